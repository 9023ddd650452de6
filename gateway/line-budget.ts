import type { Clock } from "#kit/clock.ts";
import { anonymousLinesASecond } from "./limits.ts";

/**
 * Bounds the lines of a kind in the log: so many a second, and at its end one that says how many were left out. Answers
 * whether the next line may be written.
 */
export function createLineBudget(clock: Clock, sayLeftOut: (count: number) => void): () => boolean {
  let written = 0;
  let leftOut = 0;
  let counting = false;
  const count = async () => {
    counting = true;
    await clock.sleep(1_000);
    counting = false;
    if (leftOut > 0) sayLeftOut(leftOut);
    written = 0;
    leftOut = 0;
  };
  return () => {
    if (!counting) void count();
    if (written < anonymousLinesASecond) {
      written++;
      return true;
    }
    leftOut++;
    return false;
  };
}
