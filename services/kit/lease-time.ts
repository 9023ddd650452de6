import type { Clock } from "./clock.ts";

/**
 * The time by which a process judges leases that others wrote down, in ms since the epoch: one that ends at it or before is
 * over. It does not follow the machine's clock when that is set ahead, until `leaseMs` have passed by the monotonic clock: by
 * then every owner that lives has renewed its leases by the new time. When the clock is set back it follows at once.
 * One for all the leases of a process, so that they agree on when the clock was set.
 */
export type LeaseTime = () => number;

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
