import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds for which a call that failed on its way is made again: processes that were killed are back within seconds. */
export const againForMs = 10_000;
/** Milliseconds before the second call; each later pause is twice as long, up to the longest. */
const [firstPauseMs, longestPauseMs] = [100, 1_000];

/** How a call is made again. */
export interface Again {
  /** May what failed like this be repeated, and would that help? */
  helps(error: unknown): boolean;
  /** Told once, before the first repeat. */
  onRepeat?: () => void;
}

/** Makes a call, and makes it again for up to {@link againForMs} where that helps; rejects as the last one did. */
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
