// Finds the rows of paid requests that a dead process left behind, and has them driven to their end. Text and speech each give it
// their store, and the step that a row takes.

import type { Clock } from "#kit/time/clock.ts";
import { createBringForward, type LeaseTime, type PutOffWork } from "#kit/time/lease-time.ts";
import { leaseMs, sweepBatch, sweepIntervalMs, sweepRetryMs } from "./limits.ts";

/** The store of paid requests' rows that their own process may have left behind. */
export interface DueRows<Row> extends PutOffWork {
  /** Rows past their lease, and those that are due. Read by one index, the longest due first. */
  due(now: number, limit: number): Promise<Row[]>;
  /** Puts off a row that is not open. It is tried again at `dueAt`, not before. */
  defer(requestId: string, dueAt: number): Promise<void>;
}

/** The parts of a sweep. */
export interface SweepOptions<Row> {
  clock: Clock;
  /** The time by which the sweep judges leases of other processes. */
  leaseTime: LeaseTime;
  store: DueRows<Row>;
  idOf(row: Row): string;
  /** Drives a row one step on. Any replica may do it, at any time, even several at once. */
  drive(row: Row): Promise<unknown>;
  /** Called at the end of each round. */
  afterRound?(): Promise<void>;
  /** A row could not be driven on. Without an id: the rows could not be read. */
  failed(requestId: string | undefined, error: unknown): void;
}

/** Takes up rows that other processes left behind. Several sweeps at once do no harm. */
export interface Sweep {
  /** Takes up due rows every second, until `signal` aborts. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** One round. Answers how many rows it took up. */
  once(): Promise<number>;
}

/** Makes a sweep. */
export function createSweep<Row>(options: SweepOptions<Row>): Sweep {
  const { clock, leaseTime, store, idOf, drive, afterRound, failed } = options;
  const bringForward = createBringForward(clock, leaseMs, store);
  const driveOn = async (row: Row) => {
    try {
      await drive(row);
    } catch (error) {
      failed(idOf(row), error);
      await store.defer(idOf(row), clock.now() + sweepRetryMs).catch(() => {});
    }
  };
  const once = async () => {
    await bringForward();
    const due = await store.due(leaseTime(), sweepBatch);
    await Promise.all(due.map(driveOn));
    await afterRound?.();
    return due.length;
  };
  return {
    once,
    async run(signal) {
      while (!signal.aborted) {
        await once().catch((error) => failed(undefined, error));
        await clock.sleep(sweepIntervalMs, signal).catch(() => {});
      }
    },
  };
}
