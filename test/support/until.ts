import { setTimeout as delay } from "node:timers/promises";

/** Asks again until the answer is truthy, and gives it. Rejects after `withinMs` (default 5 s), naming what it waited for. */
export async function until<T>(
  what: string,
  ask: () => T | Promise<T>,
  { withinMs = 5_000, everyMs = 10 } = {},
): Promise<NonNullable<T>> {
  const giveUpAt = performance.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (performance.now() > giveUpAt) throw new Error(`waited ${withinMs} ms for ${what}`);
    await delay(everyMs);
  }
}
