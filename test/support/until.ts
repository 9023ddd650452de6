import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds before the second look; each pause behind it is twice as long as the one before. */
const firstPauseMs = 5;
/** Milliseconds at most: a test that looks at a store or a gateway more often takes the time from what it waits for. */
const longestPauseMs = 40;

/**
 * Asks again until the answer is truthy, and gives it. Rejects after `withinMs` (default a minute), naming what it waited for. `everyMs`:
 * pauses of that length; default: from 5 to 40 ms.
 */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  { withinMs = 60_000, everyMs }: { withinMs?: number; everyMs?: number } = {},
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + withinMs;
  let pauseMs = everyMs ?? firstPauseMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() > giveUpAt) throw new Error(`waited ${withinMs} ms for ${what}`);
    await delay(pauseMs);
    if (everyMs === undefined) pauseMs = Math.min(2 * pauseMs, longestPauseMs);
  }
}

/** Milliseconds between two looks of {@link untilStill}. */
const lookEveryMs = 100;
/** Looks that must find the same: one that moves again after a pause of a busy machine is not still. */
const sameLooks = 4;

/** Waits until a counter that has begun to move moves no more, and gives it: the work behind it is held back. */
export async function untilStill(what: string, read: () => number): Promise<number> {
  let seen = 0;
  let same = 0;
  await until(
    `${what} to stand still`,
    () => {
      const now = read();
      same = now === seen ? same + 1 : 0;
      seen = now;
      return seen > 0 && same >= sameLooks;
    },
    { withinMs: 60_000, everyMs: lookEveryMs },
  );
  return seen;
}
