/** Pixels on a side of a patch, the contract's unit of image input. */
const patchPixels = 32;
/** Patches of the largest image that a vision model takes in at full detail; larger ones are scaled down to it. */
export const maxPatches = 10_000;
/** Patches of an image whose size is not known here (an address that upstream fetches): 1024 by 1536 pixels. */
export const assumedPatches = 1_536;

/**
 * Tokens that the smallest image may come to, where the catalog does not say (`imageTokensAtLeast`): models take a fixed number for
 * each image, or scale small ones up to one of their tiles. What is known of them is 85 to 2,833; this covers most.
 */
export const usualTokensAtLeast = 1_536;

/** Width and height in pixels; undefined: not known here. */
export type ImageSize = { readonly width: number; readonly height: number } | undefined;

/** Tokens of an image when upstream reports none. */
export function estimatedPatches(size: ImageSize): number {
  return size ? patchesOf(size) : assumedPatches;
}

/** Most tokens of an image, for a hold; `atLeast`: what the model may make of the smallest. */
export function boundPatches(size: ImageSize, atLeast: number): number {
  return size ? Math.max(patchesOf(size), atLeast) : maxPatches;
}

/**
 * Tokens of an image that count against the context window. Models scale images to fit, so what is refused is only what
 * cannot fit however they do it.
 */
export function leastPatches(size: ImageSize): number {
  return Math.min(estimatedPatches(size), assumedPatches);
}

function patchesOf(size: NonNullable<ImageSize>): number {
  const patches = Math.ceil(size.width / patchPixels) * Math.ceil(size.height / patchPixels);
  return Math.min(patches, maxPatches);
}
