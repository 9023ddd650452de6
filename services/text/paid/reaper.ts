// Ends requests whose process died, tells billing about their holds, and forgets recorded answers in time. Without it a crash
// would keep callers' money held.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { keepHoldMs, settleRetryMs } from "#common/paid-work/limits.ts";
import { createSweep } from "#common/paid-work/sweep.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createLeaseTime, erasingPatienceMs, type LeaseTime } from "#kit/time/lease-time.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import type { TextEvents } from "../base/events.ts";
import { answerKeptMs, forgetBatch, forgetIntervalMs, keepReviewMs } from "../base/limits.ts";
import { estimatedCharge, noCharge } from "../metering/charge.ts";
import type { Charge, UsageRecord, UsageStore } from "../store/store.ts";
import type { TextHolds } from "./text-holds.ts";

/** Dependencies of the reaper. */
export interface ReaperContext {
  clock: Clock;
  /** The time by which the reaper judges the leases of other processes. */
  leaseTime: LeaseTime;
  store: UsageStore;
  holds: TextHolds;
  events: TextEvents;
}

/** A verdict in the form of billing's protocol. */
export type Verdict = HoldVerdict["verdict"];

/** Finishes requests that other processes left behind. Any replica may do each step, because each is a compare-and-set. */
export interface Reaper {
  /**
   * Makes the next step of everything that is due, every second, until `signal` aborts. Answers that are kept for a time are deleted
   * within 10 s of its end. No caller gets them after that time in any case.
   */
  run(signal: AbortSignal): Promise<void>;
  /** Makes one round. Answers the number of requests that it took up. */
  sweep(): Promise<number>;
  /** Decides about a hold (docs/money.md). A request past its lease is closed before this answers. */
  verdictOn(requestId: string, accountId: string): Promise<Verdict>;
}

/** Makes a reaper. */
export function createReaper(context: ReaperContext): Reaper {
  const { clock, leaseTime, store, events } = context;
  const erasingTime = createLeaseTime(clock, erasingPatienceMs);
  let forgetAt = 0;
  const forget = async () => {
    if (clock.steady() < forgetAt) return;
    const gone = await store.forget(erasingTime(), forgetBatch);
    // After a full batch there may be more.
    if (gone < forgetBatch) forgetAt = clock.steady() + forgetIntervalMs;
  };
  const sweep = createSweep({
    clock,
    leaseTime,
    store,
    idOf: ({ requestId }) => requestId,
    drive: (record) => drive(record, context),
    afterRound: forget,
    failed(requestId, error) {
      const what =
        requestId === undefined ? "a sweep failed" : "a due request could not be driven on";
      events.trouble(what, requestId, error);
    },
  });
  return {
    run: sweep.run,
    sweep: sweep.once,
    async verdictOn(requestId, accountId) {
      const record = await store.find(requestId);
      if (!record || record.accountId !== accountId) return release;
      return verdictOf(record, context);
    },
  };
}

const release: Verdict = { case: "release", value: true };

async function drive(record: UsageRecord, context: ReaperContext): Promise<void> {
  const { store, clock, holds } = context;
  switch (record.status) {
    case "open": {
      const charge = await closeOrphan(record, context);
      if (charge) await settle(record, charge, context);
      return;
    }
    case "settling":
      return settle(record, record.charge ?? noCharge, context);
    case "review":
      // Of an earlier version. The operator ends the hold at billing. Here that has only to be noticed.
      if (await holds.isOpen(record)) {
        return store.defer(record.requestId, clock.now() + keepReviewMs);
      }
      return store.finish(
        record.requestId,
        clock.now() + answerKeptMs,
        record.charge?.amount ?? 0n,
      );
    case "closed":
      return;
  }
}

/** `open → settling {checkpoint}` where the lease is over. Undefined where another process was first. */
async function closeOrphan(
  record: UsageRecord,
  { clock, leaseTime, store, events }: ReaperContext,
): Promise<Charge | undefined> {
  const now = clock.now();
  const { inputTokens, outputTokens } = record;
  // A request that was never sent to an upstream costs nothing.
  const charge = record.dispatched ? estimatedCharge(record, inputTokens, outputTokens) : noCharge;
  const end = record.dispatched ? "lost" : "unsent";
  const closing = { kind: "settling", end, charge } as const;
  const at = { now, dueAt: now + settleRetryMs };
  if (!(await store.close(record.requestId, { leaseOverAt: leaseTime() }, closing, at)))
    return undefined;
  events.orphan(record);
  events.closed(record, end, charge);
  return charge;
}

/** Charges within the hold alone. The request's own process gets, or got, the amount of the first charge. */
async function settle(record: UsageRecord, charge: Charge, context: ReaperContext): Promise<void> {
  const now = context.clock.now();
  const endedAt = record.closedAt ?? now;
  const notes = { told: record.told, status: record.end ?? "lost", endedAt };
  const charged = await context.holds.draw(record, charge, notes);
  // The answer is kept for a day from its end, even if the sweep comes to it later.
  await context.store.finish(record.requestId, endedAt + answerKeptMs, charged);
}

/** The verdict on a hold. Billing closes the hold after a release, so the request must be charged before. */
async function verdictOf(record: UsageRecord, context: ReaperContext): Promise<Verdict> {
  const { clock, leaseTime, store } = context;
  const keepFor = (ms: number): Verdict => ({
    case: "keepUntil",
    value: timestampFromMs(clock.now() + ms),
  });
  if (record.status === "review") return keepFor(keepReviewMs);
  if (record.status === "open" && record.leaseUntil > leaseTime()) return keepFor(keepHoldMs);
  await drive(record, context);
  const left = record.status === "open" ? await store.find(record.requestId) : undefined;
  if (!left || left.status === "closed") return release;
  // The request's process is alive, or has ended the request at this moment.
  return left.status === "open" ? keepFor(keepHoldMs) : verdictOf(left, context);
}
