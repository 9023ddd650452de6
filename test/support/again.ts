import { setTimeout as delay } from "node:timers/promises";

/**
 * Asks as clients do: again, under the same idempotency key, where a busy store had no room for all of them in time. `onBusy` hears of each
 * such answer.
 */
export async function againWhereBusy<A extends { status: number; headers: Headers }>(
  ask: () => Promise<A>,
  onBusy: (answer: A) => void = () => {},
): Promise<A> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 503) return answer;
    onBusy(answer);
    await delay(1_000 * Number(answer.headers.get("retry-after")));
  }
}
