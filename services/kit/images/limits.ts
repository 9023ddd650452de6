/** Images of one account that wait for a decoder; the next is refused as `busy`. As many as uploads and imports of it go on. */
export const waitingImages = 512;
/** The same of an account that is not known to pay. */
export const waitingImagesUnpaid = 64;
/** An image waits no longer than this for a decoder, in ms: callers have left by then. */
export const imageWaitMs = 60_000;
/** A decoder without work ends after this, in ms: it holds 60 MiB or more, and starts in a quarter of a second. */
export const decoderIdleMs = 15_000;

/** JPEG and WebP of more pixels are bounded together: 6 bytes a pixel were seen, 320 MiB for 50 megapixels. */
export const largeImagePixels = 12_000_000;
/** Pixels of the largest (the contract's): so many of one account are decoded at once. */
export const largestPixels = 50_000_000;
/** Pixels that are decoded beside them, of another account: a camera's photo does not wait for the largest pictures, and takes 150 MiB. */
export const besidePixels = 24_000_000;
/** Where the size of an image in a file is looked for: behind a preview that cameras put in front. */
export const sniffedBytes = 128 * 1024;

/** A decoder starts within a quarter of a second; this is for a machine under load. */
export const decoderStartTimeoutMs = 15_000;

/** JavaScript heap of a decoder: pixels and messages live outside of it. */
export const decoderHeapMb = 64;

/** Node and libvips take 90 MiB before the first image, which itself may have 20. */
export const leastDecoderMemoryMb = 128;

/** How often a decoder at work weighs itself; memory fills at about 1 MiB a millisecond. */
export const decoderWeighingIntervalMs = 10;

/** What is kept of a decoder's complaints while it starts. */
export const decoderComplaintChars = 2000;

/** Compressed data of a PNG that is unpacked at once. */
export const gatheredBytes = 128 * 1024;
/** What it unpacks to is looked at in pieces of this. */
export const inflatedChunkBytes = 256 * 1024;

/** Scans of a progressive JPEG: encoders make about ten, and each goes over all pixels for a few bytes. */
export const maxJpegScans = 100;

/**
 * Pixels of a JPEG of several scans that are decoded at most: 24 MB of coefficients, 32 MB of four inks. 50 megapixels took
 * 390 to 510 MiB.
 */
export const stripPixels = 4_000_000;
/** Rows of it at least: two rows of the largest blocks that there are. */
export const leastStripRows = 64;

/** Images of more pixels are decoded at an eighth of their size: all of the file is read, fewer pixels are kept. */
export const shrunkFromPixels = 1_000_000;
