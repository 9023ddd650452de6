import { type Clock, systemClock } from "#kit/clock.ts";

/** The machine's clock, with a lever: what a process waits hours for happens at once. */
export interface JumpClock extends Clock {
  /** Time is `ms` later from now on; every sleeper whose time has come wakes up. */
  jump(ms: number): void;
  /** Sets the clock ahead (or back) by `ms`: no time passes, and no timer fires. */
  set(ms: number): void;
}

/** Makes a {@link JumpClock} that shows the machine's time, or that of `base`. */
export function jumpClock(base: Clock = systemClock): JumpClock {
  let aheadMs = 0;
  let setMs = 0;
  let jumped = Promise.withResolvers<void>();
  const steady = () => base.steady() + aheadMs;
  return {
    now: () => base.now() + aheadMs + setMs,
    steady,
    set(ms) {
      setMs += ms;
    },
    async sleep(ms, signal) {
      const until = steady() + ms;
      for (let left = ms; left > 0; left = until - steady()) {
        const wake = new AbortController();
        const either = signal ? AbortSignal.any([signal, wake.signal]) : wake.signal;
        await Promise.race([base.sleep(left, either), jumped.promise]).catch(() => {});
        wake.abort();
        signal?.throwIfAborted();
      }
      signal?.throwIfAborted();
    },
    jump(ms) {
      aheadMs += ms;
      jumped.resolve();
      jumped = Promise.withResolvers();
    },
  };
}

/**
 * A clock that counts the sleeps of just `ms` that have begun. A background task that has begun its second has ended
 * what it does between two.
 */
export function countingPauses(
  clock: JumpClock,
  ms: number,
): { clock: JumpClock; pauses: () => number } {
  let begun = 0;
  const sleep = (asked: number, signal?: AbortSignal) => {
    if (asked === ms) begun++;
    return clock.sleep(asked, signal);
  };
  return { clock: { ...clock, sleep }, pauses: () => begun };
}
