// Tokens of images by their size, in patches or in tiles. They are for holds, and for usage that no upstream reports.

/** Pixels on a side of a patch, the contract's unit of image input. */
const patchPixels = 32;
/** Patches of the largest image that a vision model reads at full detail. Larger images are scaled down to it. */
export const maxPatches = 10_000;
/** Patches of an image of unknown size (at an address that the upstream fetches): 1024 by 1536 pixels. */
export const assumedPatches = 1_536;

/**
 * Tokens that the smallest image may have, where the catalog does not say it (`imageTokensAtLeast`). Models take a fixed number for
 * each image, or scale small ones up to one of their tiles. Known numbers are 85 to 2,833. This one covers most.
 */
export const usualTokensAtLeast = 1_536;

/** Width and height in pixels. Undefined: unknown here. */
export type ImageSize = { readonly width: number; readonly height: number } | undefined;

/** How a model counts images, as far as its catalog entry says it. */
export interface ImageCount {
  /** Tokens of the smallest image. 0: unknown. */
  atLeast: number;
  /** For a model that counts tiles of 512 pixels: tokens of each tile, and further tokens of an image. 0: it counts in another way. */
  tile: number;
  base: number;
}

/** Tokens of an image where the upstream reports none. */
export function estimatedImageTokens(size: ImageSize, { atLeast, tile, base }: ImageCount): number {
  if (tile > 0) return base + tile * (size ? tilesOf(size) : assumedTiles);
  return Math.max(size ? patchesOf(size) : assumedPatches, atLeast);
}

/** The most tokens of an image, for a hold, and for a caller that leaves before its upstream reports their number. */
export function mostImageTokens(size: ImageSize, { atLeast, tile, base }: ImageCount): number {
  if (tile > 0) return base + tile * (size ? tilesOf(size) : maxTiles);
  return size ? Math.max(patchesOf(size), atLeast || usualTokensAtLeast) : maxPatches;
}

/**
 * Tokens of an image that count against the context window. Models scale images to fit, so only images are refused that cannot fit at
 * any scale.
 */
export function leastImageTokens(size: ImageSize): number {
  return Math.min(size ? patchesOf(size) : assumedPatches, assumedPatches);
}

function patchesOf(size: NonNullable<ImageSize>): number {
  const patches = Math.ceil(size.width / patchPixels) * Math.ceil(size.height / patchPixels);
  return Math.min(patches, maxPatches);
}

/** Pixels on a side of a tile, of the square that an image must fit into, and of its shorter side after scaling. */
const tiles = { pixels: 512, within: 2_048, shorter: 768 } as const;
/** Tiles of the largest image. */
const maxTiles = 8;
/** Tiles of an image of unknown size, taken as 1024 by 1536 pixels. */
const assumedTiles = 6;

/** Tiles of an image at full detail, counted like OpenAI's models do. */
function tilesOf({ width, height }: NonNullable<ImageSize>): number {
  const toFit = Math.min(1, tiles.within / Math.max(width, height));
  const scale = Math.min(toFit, tiles.shorter / Math.min(width, height));
  const along = (side: number) => Math.max(1, Math.ceil((side * scale) / tiles.pixels - 1e-9));
  return along(width) * along(height);
}
