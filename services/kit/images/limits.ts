/** Images of one account that wait for a decoder; the next is refused as `busy`. As many as uploads and imports of it go on. */
export const waitingImages = 512;
/** The same of an account that is not known to pay. */
export const waitingImagesUnpaid = 64;
/** An image waits no longer than this for a decoder, in ms: callers have left by then. */
export const imageWaitMs = 60_000;
/** A decoder without work ends after this, in ms: it holds 60 MiB or more, and starts in a quarter of a second. */
export const decoderIdleMs = 15_000;

/** JPEG and WebP of more pixels are decoded one at a time: 10 bytes a pixel were seen, 500 MiB for 50 megapixels. */
export const largeImagePixels = 12_000_000;
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

/** Images of more pixels are decoded at an eighth of their size: all of the file is read, fewer pixels are kept. */
export const shrunkFromPixels = 1_000_000;
