import { setTimeout as delay } from "node:timers/promises";

/**
 * Sends a request like a client. Where a busy store had no room in time, it repeats the request under the same idempotency key. `onBusy`
 * gets each such answer.
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
