// Begins a generation at an upstream, for all drivers: notes that the request goes out, and says what a refusal of it means.

import type { JsonValue } from "#kit/base/json.ts";
import { errorOfBeginning, failed } from "./faults.ts";
import { generateLimits } from "./limits.ts";
import type { GenerationTask } from "./port.ts";

/**
 * Sends the request that begins a generation, after it was written down that it goes out. An upstream that does not take the request is
 * not asked again here. The job waits in the queue, where it takes no place of the upstream's. `takesKey`: the request carries our
 * idempotency key.
 */
export async function begin<T>(
  task: GenerationTask,
  { takesKey }: { takesKey: boolean },
  send: () => Promise<T>,
): Promise<T> {
  await task.sending();
  try {
    return await send();
  } catch (error) {
    task.signal.throwIfAborted();
    throw errorOfBeginning(error, { takesKey }) ?? error;
  }
}

/** The id that an upstream gave a task. Throws a `failed` GenerationError where it cannot be kept as an id. */
export function checkedTaskId(value: JsonValue | undefined): string {
  const isKept =
    typeof value === "string" && value !== "" && value.length <= generateLimits.resumeIdChars;
  if (!isKept) throw failed("the upstream's answer names no task");
  return value;
}
