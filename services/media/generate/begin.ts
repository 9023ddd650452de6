import type { JsonReply } from "./exchange.ts";
import { errorOfBeginning } from "./faults.ts";
import type { GenerationTask } from "./port.ts";

/**
 * Sends the request that begins a generation, after it was written down that it goes out. An upstream that will not take
 * it is not asked again here: the job waits in the queue, where it holds nobody's place. `takesKey`: the request carries our
 * idempotency key.
 */
export async function begin(
  task: GenerationTask,
  { takesKey }: { takesKey: boolean },
  send: () => Promise<JsonReply>,
): Promise<JsonReply> {
  await task.sending();
  try {
    return await send();
  } catch (error) {
    task.signal.throwIfAborted();
    throw errorOfBeginning(error, { takesKey }) ?? error;
  }
}
