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

/** What the reaper needs. */
export interface ReaperContext {
  clock: Clock;
  /** By which it judges the leases of other processes. */
  leaseTime: LeaseTime;
  store: UsageStore;
  holds: TextHolds;
  events: TextEvents;
}

/** A verdict as the wire has it. */
export type Verdict = HoldVerdict["verdict"];

/** Takes up what other processes left behind. Any replica may do any of it: each step is a compare-and-set. */
export interface Reaper {
  /**
   * Drives everything that is due one step on, every second, until `signal` aborts. What is kept for a time is deleted
   * within 10 s of its end: no caller is given it after that anyway.
   */
  run(signal: AbortSignal): Promise<void>;
  /** One round; answers how many requests it took up. */
  sweep(): Promise<number>;
  /** What is to become of a hold (docs/money.md): a request past its lease is closed before the answer. */
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
    // After a full batch there is more.
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
      // Of an older release. The operator ends the hold at billing; what is left to do here is to notice.
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

/** `open → settling {checkpoint}` where the lease is over; undefined where another process was first. */
async function closeOrphan(
  record: UsageRecord,
  { clock, leaseTime, store, events }: ReaperContext,
): Promise<Charge | undefined> {
  const now = clock.now();
  const { inputTokens, outputTokens } = record;
  // One that was never sent upstream has cost nothing.
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

/** Out of the hold alone: the process that ran it was told, or will be, what the first draw charged. */
async function settle(record: UsageRecord, charge: Charge, context: ReaperContext): Promise<void> {
  const now = context.clock.now();
  const told = { ...record.told, status: record.end ?? "lost", endedAt: record.closedAt ?? now };
  const charged = await context.holds.draw(record, charge, told);
  // Its day began when it ended, whenever the sweeper comes to it.
  await context.store.finish(record.requestId, told.endedAt + answerKeptMs, charged);
}

/** Billing closes the hold after a release: what is charged must be drawn by then. */
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
  // Its process lives after all, or has ended it this moment.
  return left.status === "open" ? keepFor(keepHoldMs) : verdictOf(left, context);
}
