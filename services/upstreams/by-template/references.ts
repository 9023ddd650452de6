// Brings reference images to an upstream before a model is called by a template: uploaded, or within the request.

import { parseUrl } from "#kit/base/url.ts";
import { ReferenceTransport } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { DriverContext } from "../media/context.ts";
import { errorBeforeBeginning, failed, isWorthRepeating } from "../media/faults.ts";
import { generateTries } from "../media/limits.ts";
import { type LoadedReference, loadReferences } from "../media/load-references.ts";
import type { GenerationTask } from "../media/port.ts";
import { withTries } from "../media/retries.ts";

/** The ways in which a protocol takes references. */
export interface ReferencePlaces {
  /** Bytes of all data URIs in a request. Beyond that they are uploaded, even where the catalog says otherwise. */
  inlineBytes: number;
  /** Uploads one and resolves with its URL there. Uploading one twice does no harm. */
  upload(reference: LoadedReference): Promise<string>;
}

/**
 * A task's references in the form for its template: URLs of uploaded files, or data URIs where the catalog says so. They are in memory
 * meanwhile, and the caller has taken room for them.
 */
export async function placeReferences(
  context: DriverContext,
  { references, upstream, signal }: GenerationTask,
  { inlineBytes, upload }: ReferencePlaces,
): Promise<string[]> {
  const loaded = await loadReferences(references, signal);
  const bytes = loaded.reduce((sum, reference) => sum + reference.bytes.length, 0);
  const { INLINE } = ReferenceTransport;
  if (upstream.references === INLINE && bytes <= inlineBytes) return loaded.map(dataUri);
  const tries = { most: generateTries.start, mayRepeat: isWorthRepeating, signal };
  const urls: string[] = [];
  for (const reference of loaded) {
    const url = await withTries(context, tries, () => upload(reference)).catch((error) => {
      signal.throwIfAborted();
      throw errorBeforeBeginning(error) ?? error;
    });
    urls.push(url);
  }
  return urls;
}

/** The URL in an upstream's answer to an upload. */
export function uploadedUrl(value: unknown): string {
  if (typeof value !== "string" || !parseUrl(value)) {
    throw failed("the upstream names no place for a reference");
  }
  return value;
}

/** A reference as a data URI. */
export function dataUri({ mimeType, bytes }: LoadedReference): string {
  return `data:${mimeType};base64,${Buffer.from(bytes).toString("base64")}`;
}
