// Repeats a failed call of the command for some seconds, because a server that restarts is back by then.

import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds for which a failed call is repeated. Killed processes are back within seconds. */
export const againForMs = 10_000;
/** Milliseconds before the second call. Each later pause is twice as long, up to the longest. */
const [firstPauseMs, longestPauseMs] = [100, 1_000];

/** Rules for repeating a call. */
export interface Again {
  /** Is a repeat after this error safe, and can it help? */
  helps(error: unknown): boolean;
  /** Called once, before the first repeat. */
  onRepeat?: () => void;
}

/** Makes a call, and repeats it for up to {@link againForMs} where that helps. Rejects with the last error. */
export async function again<T>(call: () => Promise<T>, { helps, onRepeat }: Again): Promise<T> {
  const endMs = performance.now() + againForMs;
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await call();
    } catch (error) {
      if (!helps(error) || performance.now() + pauseMs > endMs) throw error;
      if (pauseMs === firstPauseMs) onRepeat?.();
    }
    await delay(pauseMs);
  }
}
