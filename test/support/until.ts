import { setTimeout as delay } from "node:timers/promises";

/** Asks again until the answer is truthy, and gives it. Rejects after `withinMs` (default a minute), naming what it waited for. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  { withinMs = 60_000, everyMs = 10 } = {},
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() > giveUpAt) throw new Error(`waited ${withinMs} ms for ${what}`);
    await delay(everyMs);
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
