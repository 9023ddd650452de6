import { buffer } from "node:stream/consumers";
import type { Call } from "./exchange.ts";
import { failed, unknown } from "./faults.ts";
import { generateLimits } from "./limits.ts";
import type { ReferenceBytes } from "./port.ts";

/** A reference in memory, on its way into a request. */
export interface LoadedReference {
  mimeType: string;
  bytes: Uint8Array;
  /** A name with the ending of its type: upstreams look at it. */
  fileName: string;
}

/** Headers and body of a form. */
export async function formBody(form: FormData): Promise<Pick<Call, "headers" | "body">> {
  const encoded = new Response(form);
  const contentType = encoded.headers.get("content-type") ?? "multipart/form-data";
  return { headers: { "content-type": contentType }, body: await encoded.bytes() };
}

/** Puts a reference into a form. */
export function appendReference(form: FormData, field: string, reference: LoadedReference): void {
  // A copy of the type alone: the bytes are the reference's own.
  const blob = new Blob([reference.bytes as Uint8Array<ArrayBuffer>], { type: reference.mimeType });
  form.append(field, blob, reference.fileName);
}

/** Reads references into memory. Rejects `failed` where they are too much for one request, `unknown` where our store fails. */
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
      .then(buffer)
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
