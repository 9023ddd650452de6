import type { Clock } from "./clock.ts";

/**
 * The time by which a process judges leases that others wrote down, in ms since the epoch: one that ends at it or before is
 * over. It does not follow the machine's clock when that is set ahead, until `leaseMs` have passed by the monotonic clock: by
 * then every owner that lives has renewed its leases by the new time. When the clock is set back it follows at once.
 * One for all the leases of a service in a process, so that they agree on when the clock was set. It notices that only where it is
 * asked, so a sweeper asks in every round.
 */
export type LeaseTime = () => number;

/**
 * How long a clock that was set far ahead must go on so before what is kept for a time is erased by it, in ms: what was erased by a clock
 * that was wrong does not come back, and an operator or a time server sets one right within the hour.
 */
export const erasingPatienceMs = 3_600_000;

/** Milliseconds by which the clock may run ahead between two looks and count as running: NTP slews by far less. */
const toleratedMs = 1_000;

/** Makes one that believes the clock as it stands now. */
export function createLeaseTime(clock: Clock, leaseMs: number): LeaseTime {
  /** What the clock shows beyond the monotonic one, as far as it is believed. */
  let believedMs = clock.now() - clock.steady();
  /** What it shows since it was set ahead, and when that was noticed. */
  let set: { offsetMs: number; atMs: number } | undefined;
  return () => {
    const steadyMs = clock.steady();
    const offsetMs = clock.now() - steadyMs;
    if (offsetMs <= believedMs + toleratedMs) {
      set = undefined;
      believedMs = offsetMs;
      return steadyMs + believedMs;
    }
    if (!set || Math.abs(offsetMs - set.offsetMs) > toleratedMs) set = { offsetMs, atMs: steadyMs };
    if (steadyMs - set.atMs >= leaseMs) {
      set = undefined;
      believedMs = offsetMs;
    }
    return steadyMs + believedMs;
  };
}

/** What was written down by a process whose clock was ahead lies too far in the future. */
export interface PutOffWork {
  /**
   * What is at work, and leased or due later than anything in its state ever is at `now`, is so until `at`; found by index.
   * Times in ms since the epoch.
   */
  bringForward(now: number, at: number): Promise<void>;
}

/** What is put off longer than its state allows, and this many ms: a clock was set. By less the clocks of machines differ. */
export const clockSlackMs = 30_000;
/** How often it is looked for, in ms: a clock is hardly ever set back. */
const lookEveryMs = 10_000;

/**
 * Brings forward now and then what a clock that was ahead has put off: else the work of a process that died with such a
 * clock, and its hold, would rest until then. It counts as leased anew: an owner that lives goes on renewing its lease.
 */
export function createBringForward(
  clock: Clock,
  leaseMs: number,
  store: PutOffWork,
): () => Promise<void> {
  let lookAt = 0;
  return async () => {
    if (clock.steady() < lookAt) return;
    lookAt = clock.steady() + lookEveryMs;
    const now = clock.now();
    await store.bringForward(now, now + leaseMs);
  };
}
