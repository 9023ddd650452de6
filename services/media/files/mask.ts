// Checks that a mask fits the image that it belongs to, once both are stored.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { readInTurns } from "#kit/base/in-turns.ts";
import { pngBeginningBytes, pngHasAlpha } from "#kit/images/index.ts";
import type { BlobStore } from "#kit/store/blobs.ts";
import type { PinnedReference, ReferenceInput } from "../references/port.ts";

/** Refuses a mask that does not say which pixels of the first image may change with INVALID_REFERENCE_IMAGE. */
export async function checkMask(
  references: readonly ReferenceInput[],
  pinned: readonly PinnedReference[],
  blobs: Pick<BlobStore, "openRead">,
): Promise<void> {
  const at = references.findIndex(({ isMask }) => isMask);
  const [image, mask] = [pinned[0], pinned[at]];
  const param = references[at]?.param;
  if (!image || !mask || param === undefined) return;
  const { width, height } = image;
  if (mask.width !== width || mask.height !== height) {
    refuse(ErrorReason.INVALID_REFERENCE_IMAGE, {
      param,
      message: `The mask must have the size of the first image: ${width}x${height}.`,
    });
  }
  if (mask.mimeType === "image/png" && (await hasAlpha(mask, blobs))) return;
  refuse(ErrorReason.INVALID_REFERENCE_IMAGE, {
    param,
    message: "The mask must be a PNG with an alpha channel. What is transparent there may change.",
  });
}

async function hasAlpha(
  { blobKey, sizeBytes }: PinnedReference,
  blobs: Pick<BlobStore, "openRead">,
): Promise<boolean> {
  const end = Math.min(sizeBytes, pngBeginningBytes) - 1;
  return pngHasAlpha(await readInTurns(await blobs.openRead(blobKey, { start: 0, end })));
}
