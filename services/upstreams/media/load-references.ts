// Reads a task's reference images from our store into memory, for the drivers that send them.

import { readInTurns } from "#kit/base/in-turns.ts";
import type { FormFile } from "../form.ts";
import { failed, unknown } from "./faults.ts";
import { generateLimits } from "./limits.ts";
import type { ReferenceBytes } from "./port.ts";

/** A reference in memory, to be sent in a request. */
export type LoadedReference = FormFile;

/**
 * Reads references into memory. Rejects with `failed` where they are too much for one request, and with `unknown` where our store
 * fails.
 */
export async function loadReferences(
  references: readonly ReferenceBytes[],
  signal: AbortSignal,
): Promise<LoadedReference[]> {
  const loaded: LoadedReference[] = [];
  let total = 0;
  for (const [index, reference] of references.entries()) {
    signal.throwIfAborted();
    const bytes = await reference
      .open()
      .then(readInTurns)
      .catch((cause) => {
        throw unknown("a reference could not be read", { cause });
      });
    total += bytes.length;
    if (total > generateLimits.referencesBytes) throw failed("the references are too large");
    const ending = reference.mimeType.split("/")[1] ?? "bin";
    loaded.push({
      mimeType: reference.mimeType,
      bytes,
      fileName: `reference-${index + 1}.${ending}`,
    });
  }
  return loaded;
}
