// Gives the time to all code: the machine's, one that tests move, and one that is set by the database's server.

/** The source of time for all code, so that tests can hold it still. */
export interface Clock {
  /** Milliseconds since the epoch. May jump forward or back, whenever the machine's clock is set. */
  now(): number;
  /**
   * Milliseconds since a moment of this process. They pass steadily, even when the machine's clock is set. Use them to measure
   * how long something has lasted.
   */
  steady(): number;
  /** Resolves after `ms`. Rejects with the signal's reason where the signal aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The machine's own clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  steady: () => Math.floor(performance.now()),
  // Made by hand: Node's timers make an error with a stack for each sleep that is aborted, and each stream has one.
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

/** A clock that moves only when a test moves it. Sleepers wake in the order of their times, as the clock passes them. */
export interface ManualClock extends Clock {
  /** Moves forward by `ms` and lets all work that becomes due run. */
  advance(ms: number): Promise<void>;
  /** Moves forward by `ms` at once, as after a long pause of the process. A sleep of less than that ends late, and once. */
  leap(ms: number): Promise<void>;
  /** Sets the clock ahead (or back) by `ms`, without any time passing. */
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
        // The sleeper's next work may sleep again within this advance.
        await new Promise((resolve) => setImmediate(resolve));
      }
      now = end;
    },
  };
  return clock;
}

/** A clock that is set by a server's. All processes that use the same server agree. */
export interface CorrectedClock extends Clock {
  /**
   * Calls `ask` for the server's time, in milliseconds since the epoch, and follows it from then on. Answers whether this changed
   * anything. "unsure": the answer took too long, or was no number. Rejects where `ask` does.
   */
  correct(ask: () => Promise<number>): Promise<"corrected" | "kept" | "unsure">;
  /** Milliseconds by which this clock takes the machine's clock to be behind. */
  readonly behindMs: number;
}

/**
 * Milliseconds below which a difference is ignored: clocks that are kept by NTP differ by less. A worker gives its lease up
 * seconds before others may take it over.
 */
const toleratedMs = 1_000;
/** Milliseconds that an answer may take. The measured time is off by at most that. */
const roundTripMs = 500;

/**
 * Makes a clock that shows `base` until it is corrected. `machineNow` reads the machine's clock, even where `base` is another
 * clock.
 */
export function correctedClock(
  base: Clock = systemClock,
  machineNow: () => number = () => Date.now(),
): CorrectedClock {
  let behindMs = 0;
  return {
    now: () => base.now() + behindMs,
    steady: () => base.steady(),
    sleep: (ms, signal) => base.sleep(ms, signal),
    async correct(ask) {
      const askedAtMs = performance.now();
      const serverMs = await ask();
      const tookMs = performance.now() - askedAtMs;
      // A whole number, like all values made of a clock's time.
      const measuredMs = Math.round(serverMs + tookMs / 2 - machineNow());
      if (tookMs > roundTripMs || Number.isNaN(serverMs)) return "unsure";
      // Small differences are not followed: time that jumps back is worse than time that is a little off.
      if (Math.abs(measuredMs - behindMs) <= toleratedMs) return "kept";
      behindMs = measuredMs;
      return "corrected";
    },
    get behindMs() {
      return behindMs;
    },
  };
}
