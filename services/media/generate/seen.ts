import type { InferenceCall } from "#kit/telemetry/inference.ts";
import type { DriverContext } from "./context.ts";
import { toGenerationError } from "./faults.ts";

/** Runs one generation, seen from outside. */
export async function seen<T>(
  { inferences }: DriverContext,
  call: Omit<InferenceCall, "operation">,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  if (!inferences) return work();
  const inference = inferences.begin({ operation: "generate_content", ...call });
  try {
    const made = await inference.run(work);
    inference.end();
    return made;
  } catch (error) {
    inference.end(signal.aborted ? "cancelled" : toGenerationError(error).fault);
    throw error;
  }
}
