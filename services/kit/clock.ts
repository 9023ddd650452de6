/** Where code gets time from, so that tests can hold it still. */
export interface Clock {
  /** Milliseconds since the epoch. May jump, to and fro, whenever the machine's clock is set. */
  now(): number;
  /**
   * Milliseconds from a beginning of this process's own. They pass as time does, whatever the machine's clock is set to:
   * what has lasted for how long is measured by these.
   */
  steady(): number;
  /** Resolves after `ms`; rejects with the signal's reason when that aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => Math.floor(performance.now()),
  // By hand: the timers of Node make an error with a stack for each sleep that is broken off, one for every stream.
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const wake = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      // A sleeping background task must not keep a stopping process alive.
      const timer = setTimeout(wake, ms).unref();
      signal?.addEventListener("abort", leave, { once: true });
    }),
};

/** A clock that moves only when told. Sleepers wake, in order of their time, as it passes them. */
export interface ManualClock extends Clock {
  /** Moves forward by `ms` and lets everything that became due run. */
  advance(ms: number): Promise<void>;
  /** Moves forward by `ms` at once, as after a long pause of the process: who sleeps less than that wakes late, and once. */
  leap(ms: number): Promise<void>;
  /** Sets the clock ahead (or back) by `ms`: no time passes. */
  set(ms: number): void;
}

/** Makes a {@link ManualClock} that begins at `startMs` (default 2026-01-15T12:00:00Z). */
export function manualClock(startMs = Date.UTC(2026, 0, 15, 12)): ManualClock {
  /** Time that has passed. */
  let now = 0;
  let aheadMs = startMs;
  let sleepers: { at: number; wake: () => void }[] = [];
  const clock: ManualClock = {
    now: () => now + aheadMs,
    steady: () => now,
    set(ms) {
      aheadMs += ms;
    },
    leap(ms) {
      now += ms;
      return clock.advance(0);
    },
    sleep(ms, signal) {
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason);
        const sleeper = { at: now + ms, wake: resolve };
        signal?.addEventListener("abort", () => {
          sleepers = sleepers.filter((s) => s !== sleeper);
          reject(signal.reason);
        });
        sleepers.push(sleeper);
      });
    },
    async advance(ms) {
      const end = now + ms;
      for (;;) {
        const next = sleepers.filter((s) => s.at <= end).sort((a, b) => a.at - b.at)[0];
        if (!next) break;
        now = Math.max(now, next.at);
        sleepers = sleepers.filter((s) => s !== next);
        next.wake();
        // Whatever the sleeper does next may sleep again within this advance.
        await new Promise((resolve) => setImmediate(resolve));
      }
      now = end;
    },
  };
  return clock;
}
