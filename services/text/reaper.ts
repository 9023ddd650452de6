import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Clock } from "#kit/clock.ts";
import { createBringForward, type LeaseTime } from "#kit/lease-time.ts";
import type { HoldVerdict } from "#proto/genmesh/common/v1/hold_verdict_pb.ts";
import { estimatedCharge, noCharge } from "./closing.ts";
import type { TextEvents } from "./events.ts";
import type { TextHolds } from "./holds.ts";
import {
  answerKeptMs,
  forgetBatch,
  forgetIntervalMs,
  keepHoldMs,
  keepReviewMs,
  leaseMs,
  settleRetryMs,
  sweepBatch,
  sweepIntervalMs,
  sweepRetryMs,
} from "./limits.ts";
import type { Charge, UsageRecord, UsageStore } from "./store.ts";

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
   * within 10 s of its end: nobody is given it after that anyway.
   */
  run(signal: AbortSignal): Promise<void>;
  /** One round; answers how many requests it took up. */
  sweep(): Promise<number>;
  /** What is to become of a hold (docs/money.md): a request past its lease is closed before the answer. */
  verdictOn(requestId: string, accountId: string): Promise<Verdict>;
}

/** Makes a reaper. */
export function createReaper(context: ReaperContext): Reaper {
  const { clock, store, events } = context;
  const { leaseTime } = context;
  const bringForward = createBringForward(clock, leaseMs, store);
  let forgetAt = 0;
  const sweep = async () => {
    await bringForward();
    const due = await store.due(leaseTime(), sweepBatch);
    await Promise.all(due.map(driveOn));
    if (clock.steady() >= forgetAt) await forget();
    return due.length;
  };
  const forget = async () => {
    const gone = await store.forget(clock.now(), forgetBatch);
    // After a full batch there is more.
    if (gone < forgetBatch) forgetAt = clock.steady() + forgetIntervalMs;
  };
  const driveOn = async (record: UsageRecord) => {
    try {
      await drive(record, context);
    } catch (error) {
      events.trouble("a due request could not be driven on", record.requestId, error);
      if (record.status === "open") return;
      await store.defer(record.requestId, clock.now() + sweepRetryMs).catch(() => {});
    }
  };
  return {
    sweep,
    async run(signal) {
      while (!signal.aborted) {
        await clock.sleep(sweepIntervalMs, signal).catch(() => {});
        if (signal.aborted) return;
        await sweep().catch((error) => events.trouble("a sweep failed", undefined, error));
      }
    },
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
      return store.finish(record.requestId, clock.now() + answerKeptMs);
    case "closed":
      return;
  }
}

/** `open → settling {checkpoint}` where the lease is over; undefined where somebody else was first. */
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

async function settle(record: UsageRecord, charge: Charge, context: ReaperContext): Promise<void> {
  await context.holds.end(record, charge);
  await context.store.finish(record.requestId, context.clock.now() + answerKeptMs);
}

async function verdictOf(record: UsageRecord, context: ReaperContext): Promise<Verdict> {
  const { clock, leaseTime, store } = context;
  const now = clock.now();
  const keepUntil = (ms: number): Verdict => ({ case: "keepUntil", value: timestampFromMs(ms) });
  switch (record.status) {
    case "open": {
      if (record.leaseUntil > leaseTime()) return keepUntil(now + keepHoldMs);
      const charge = await closeOrphan(record, context);
      if (charge) return verdictOfCharge(charge);
      const changed = await store.find(record.requestId);
      if (!changed) return release;
      return changed.status === "open" ? keepUntil(now + keepHoldMs) : verdictOf(changed, context);
    }
    case "review":
      return keepUntil(now + keepReviewMs);
    case "settling":
    case "closed":
      return verdictOfCharge(record.charge ?? noCharge);
  }
}

function verdictOfCharge({ amount }: Charge): Verdict {
  return amount === undefined ? release : { case: "settleAmount", value: amount };
}
