// Bounds the memory for whole files at upstreams of media, and shares it among accounts.

import { createFairShare, type FairShare, type Turn } from "#kit/share/fair-share.ts";
import type { MediaUpstreamsContext } from "./context.ts";
import { generateLimits } from "./limits.ts";
import { type GenerationTask, NotTakenError, type ReferenceBytes } from "./port.ts";

/** Room in memory for whole files, in bytes. Far more jobs wait at upstreams than may be read, or sent, at once. */
export interface GenerateMemory {
  /** Images that have come, and answers with images. */
  images: FairShare;
  /** References in requests that have not ended. */
  references: FairShare;
}

/** Makes it, all free. */
export function createMemory({ clock }: Pick<MediaUpstreamsContext, "clock">): GenerateMemory {
  const late = () => {
    const cause = new Error("no room for the references in time");
    return new NotTakenError("unavailable", { isCertain: true, cause });
  };
  return {
    images: createFairShare(generateLimits.imagesInMemory, { clock }),
    references: createFairShare(generateLimits.referencesInMemory, { clock, late, full: late }),
  };
}

/**
 * Takes room for an image, or an answer with images, of this many bytes. It is held while this process works on it, never while an
 * upstream does.
 */
export function takeImageRoom(
  memory: GenerateMemory,
  { accountId, signal }: Pick<GenerationTask, "accountId" | "signal">,
  bytes: number,
): Promise<Turn> {
  return memory.images.take(accountId, signal, Math.max(bytes, generateLimits.leastImageRoom));
}

/** Takes room for a task's references. Where none comes free for a while, the task is offered again later. */
export async function takeReferenceRoom(
  memory: GenerateMemory,
  { accountId, references, signal }: GenerationTask,
): Promise<Turn> {
  if (references.length === 0) return { [Symbol.dispose]() {} };
  const bytes = references.reduce((sum, reference) => sum + sizeOf(reference), 0);
  return memory.references.take(accountId, signal, bytes);
}

function sizeOf({ sizeBytes = generateLimits.imageBytes }: ReferenceBytes): number {
  return sizeBytes;
}
