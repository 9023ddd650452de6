import type { Clock } from "#kit/clock.ts";
import type { AnswerEvent } from "../port.ts";

/** How fast events are given. */
export interface Pace {
  clock: Clock;
  signal: AbortSignal;
  /** Milliseconds before each event with text; 0: none. */
  delayMs: number;
}

/** Events of one batch where there is no pace: enough to be cheap, few enough to be stopped in between. */
const batchEvents = 32;

/** Gives events in batches, at a pace. Throws only the signal's reason. */
export async function* paced(
  events: Iterable<AnswerEvent>,
  { clock, signal, delayMs }: Pace,
): AsyncGenerator<readonly AnswerEvent[]> {
  let batch: AnswerEvent[] = [];
  for (const event of events) {
    signal.throwIfAborted();
    const isDue = delayMs > 0 && event.text !== "";
    if (batch.length > 0 && (isDue || batch.length >= batchEvents)) {
      yield batch;
      batch = [];
    }
    if (isDue) {
      await clock.sleep(delayMs, signal).catch((error: unknown) => {
        signal.throwIfAborted();
        throw error;
      });
    }
    batch.push(event);
  }
  signal.throwIfAborted();
  if (batch.length > 0) yield batch;
}
