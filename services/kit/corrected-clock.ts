import { type Clock, systemClock } from "./clock.ts";

/** A clock that is set by a server's, so that all who are set by the same one agree. */
export interface CorrectedClock extends Clock {
  /**
   * Asks for the server's time, in milliseconds since the epoch, and goes by it from then on. Answers whether this changed
   * anything; "unsure": it took so long, or said so little, that it tells nothing. Rejects as `ask` does.
   */
  correct(ask: () => Promise<number>): Promise<"corrected" | "kept" | "unsure">;
  /** Milliseconds by which the machine's clock is taken to be behind. */
  readonly behindMs: number;
}

/**
 * Milliseconds below which a difference is left alone: clocks that are kept by NTP differ by less. Whoever holds a lease
 * gives it up seconds before others may take it over.
 */
const toleratedMs = 1_000;
/** Milliseconds that an answer may take: it is off by no more than that. */
const roundTripMs = 500;

/** Makes one that shows `base` until it is corrected. `machineNow`: what the machine shows, whatever `base` is. */
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
      // Whole, as all that is made of a clock's time.
      const measuredMs = Math.round(serverMs + tookMs / 2 - machineNow());
      if (tookMs > roundTripMs || Number.isNaN(serverMs)) return "unsure";
      // A little is not followed to and fro: time that jumps back is worse than time that is a little off.
      if (Math.abs(measuredMs - behindMs) <= toleratedMs) return "kept";
      behindMs = measuredMs;
      return "corrected";
    },
    get behindMs() {
      return behindMs;
    },
  };
}
