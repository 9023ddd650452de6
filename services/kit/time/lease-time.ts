// Keeps a process whose clock was set wrong from taking over work that other processes still do.

import type { Clock } from "./clock.ts";

/**
 * The time by which a process judges leases that other processes wrote, in ms since the epoch. A lease that ends at it or before
 * is over. When the machine's clock is set ahead, this time follows after `leaseMs` by the monotonic clock. By then every living
 * owner has renewed its leases by the new time. When the clock is set back, it follows at once. All leases of a service in one
 * process use the same one, so that they agree on when the clock was set. It notices a change only when it is called, so a
 * sweeper calls it in every round.
 */
export type LeaseTime = () => number;

/**
 * How long a clock that was set far ahead must keep going before expired data is erased by it, in ms. Data that was erased by a
 * wrong clock does not come back. An operator or a time server sets a clock right within the hour.
 */
export const erasingPatienceMs = 3_600_000;

/** Milliseconds by which the clock may run ahead between two calls without counting as set. NTP slews by far less. */
const toleratedMs = 1_000;

/** Makes one that believes the clock's present time. */
export function createLeaseTime(clock: Clock, leaseMs: number): LeaseTime {
  /** Milliseconds by which the clock is ahead of the monotonic one, as far as that is believed. */
  let believedMs = clock.now() - clock.steady();
  /** The clock's new offset since it was set ahead, and when that was noticed. */
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

/** Work that a process with a clock ahead wrote down with times too far in the future. */
export interface PutOffWork {
  /**
   * Work can be leased or due later than its state ever allows at `now`. This sets the lease or due time of all such work to
   * `at`. The work is found by index. Times are ms since the epoch.
   */
  bringForward(now: number, at: number): Promise<void>;
}

/**
 * Work that is put off by this many ms longer than its state allows was written by a wrong clock. Clocks of machines differ by
 * less.
 */
export const clockSlackMs = 30_000;
/** Time between two looks, in ms. A clock is hardly ever set back. */
const lookEveryMs = 10_000;

/**
 * Brings forward, now and then, work that a clock ahead has put off. Otherwise the work of a process that died with such a clock
 * would wait until that time, and so would its hold. The work counts as newly leased: an owner that lives goes on renewing its
 * lease.
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
