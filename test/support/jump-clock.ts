import { type Clock, systemClock } from "#kit/time/clock.ts";

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
 * A clock on which the sleeps of just `ms` of one background task end when the test says so: `turn` ends the one that is under way, and
 * resolves when the task has done what it does between two.
 */
export function heldPauses(
  clock: JumpClock,
  ms: number,
): { clock: JumpClock; turn(): Promise<void> } {
  let begun = Promise.withResolvers<void>();
  let over = Promise.withResolvers<void>();
  const sleep = (asked: number, signal?: AbortSignal) => {
    if (asked !== ms) return clock.sleep(asked, signal);
    over = Promise.withResolvers<void>();
    begun.resolve();
    const aborted = Promise.withResolvers<never>();
    signal?.addEventListener("abort", () => aborted.reject(signal.reason), { once: true });
    return Promise.race([over.promise, aborted.promise]);
  };
  const turn = async () => {
    await begun.promise;
    begun = Promise.withResolvers();
    over.resolve();
    await begun.promise;
  };
  return { clock: { ...clock, sleep }, turn };
}
