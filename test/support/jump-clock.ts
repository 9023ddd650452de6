import { type Clock, systemClock } from "#kit/time/clock.ts";

/** The machine's clock, which a test can move. Waits of hours then end at once. */
export interface JumpClock extends Clock {
  /** Moves the time forward by `ms`. Every sleeper whose time has come wakes up. */
  jump(ms: number): void;
  /** Sets the clock forward (or back) by `ms`. No time passes, and no timer fires. */
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
 * A clock on which a test ends the sleeps of just `ms` of one background task. `turn` ends the present sleep, and resolves when the task
 * has done its work and sleeps again.
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
