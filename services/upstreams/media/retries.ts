// Repeats one step at an upstream, with pauses. Whether a step may be repeated is the caller's decision.

import type { DriverContext } from "./context.ts";
import { repeating } from "./events.ts";
import { StatusError } from "./faults.ts";
import { generateTimes } from "./limits.ts";

/** How a step is repeated. */
export interface Tries {
  /** The most tries, the first included. There are more where `lastingMs` is not over yet. */
  most: number;
  /** Milliseconds from the beginning of the first try within which the step is repeated any number of times. Default: none. */
  lastingMs?: number;
  mayRepeat: (error: unknown) => boolean;
  signal: AbortSignal;
}

/**
 * Runs a step until it succeeds or may not be repeated. The pause between tries doubles, or is the one that the upstream asks for.
 * Rejects with the last error unchanged, or at once with the signal's reason.
 */
export async function withTries<T>(
  context: DriverContext,
  { most, lastingMs = 0, mayRepeat, signal }: Tries,
  step: () => Promise<T>,
): Promise<T> {
  const overAt = context.clock.steady() + lastingMs;
  for (let tries = 1; ; tries++) {
    signal.throwIfAborted();
    try {
      return await step();
    } catch (error) {
      signal.throwIfAborted();
      const left = { tries: most - tries, ms: overAt - context.clock.steady() };
      const pauseMs = pauseAfter(error, tries, left);
      if (pauseMs === undefined || !mayRepeat(error)) throw error;
      repeating(context.log, tries, pauseMs, error);
      await context.clock.sleep(pauseMs, signal);
    }
  }
}

/** Milliseconds before the next try. Undefined: there is none. */
function pauseAfter(
  error: unknown,
  tries: number,
  left: { tries: number; ms: number },
): number | undefined {
  const { firstRetryMs, longestPauseMs, longestRetryAfterMs } = generateTimes;
  const asked = error instanceof StatusError ? error.retryAfterMs : undefined;
  const doubled = firstRetryMs * 2 ** (tries - 1);
  if (left.tries > 0 && (asked ?? doubled) <= longestRetryAfterMs) return asked ?? doubled;
  // The last try comes when the time is over.
  return left.ms > 0 ? Math.min(asked ?? doubled, longestPauseMs, left.ms) : undefined;
}
