import { setTimeout as delay } from "node:timers/promises";

/** Milliseconds before the second look. Each later pause is twice as long as the one before. */
const firstPauseMs = 5;
/** Milliseconds at most. A test that looks more often slows the store or gateway that it waits for. */
const longestPauseMs = 40;

/**
 * Repeats a look until its answer is truthy, and gives the answer. Rejects after `withinMs` (default a minute) with the name of the wait.
 * `everyMs` is the pause between two looks. By default it grows from 5 to 40 ms.
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
/** Looks in a row that must find the same value. With fewer, a pause of a busy machine would look like the end. */
const sameLooks = 4;

/** Waits until a counter that has begun to rise stops rising, and gives it. The work behind the counter is then held back. */
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
