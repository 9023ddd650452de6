// Reports generations of media to telemetry.

import { errorOfAbort, type InferenceCall } from "#kit/telemetry/inference.ts";
import type { DriverContext } from "./context.ts";
import { toGenerationError } from "./faults.ts";
import { NotTakenError } from "./port.ts";

/** Runs one generation as an inference of telemetry. */
export async function withInference<T>(
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
    inference.end(signal.aborted ? errorOfAbort(signal) : wordFor(error));
    throw error;
  }
}

/** No place at an upstream became free in time. The generation ended before it began. */
export function noPlaceCameFree(
  { inferences }: DriverContext,
  call: Omit<InferenceCall, "operation">,
): void {
  inferences?.begin({ operation: "generate_content", ...call }).end("unreachable");
}

function wordFor(error: unknown): string {
  const found = toGenerationError(error);
  return found instanceof NotTakenError ? found.refusal : found.fault;
}
