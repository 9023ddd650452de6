// The bounds of checking images: how many wait, what a decoder may take, and how much of an image is decoded. The API's own
// bounds of images come with each request to the verifier.

/**
 * Images of one account that wait for a decoder. A further one is refused as `busy`. It is as many as an account may have uploads and
 * imports under way.
 */
export const waitingImages = 512;
/** The same for an account that is not known to pay. */
export const waitingImagesUnpaid = 64;
/** The longest that an image waits for a decoder, in ms. Callers have left by then. */
export const imageWaitMs = 60_000;
/** A decoder without work ends after this, in ms. It holds 60 MiB or more, and starts in a quarter of a second. */
export const decoderIdleMs = 15_000;

/** JPEG and WebP with more pixels than this share a bound. They were measured to take 6 bytes a pixel, 320 MiB for 50 megapixels. */
export const largeImagePixels = 12_000_000;
/** Pixels of the largest image that the API takes. Of one account, this many are decoded at once. */
export const largestPixels = 50_000_000;
/**
 * Pixels of another account that are decoded at the same time. They take 150 MiB. So a camera's image does not wait for the largest
 * images.
 */
export const besidePixels = 24_000_000;
/** The first bytes of a file in which its image's size is looked for. It may follow a preview that cameras put in front. */
export const sniffedBytes = 128 * 1024;

/** Milliseconds for a decoder's start, on a machine under load. Usually it takes a quarter of a second. */
export const decoderStartTimeoutMs = 15_000;

/** JavaScript heap of a decoder. Pixels and messages are outside of it. */
export const decoderHeapMb = 64;

/** Least memory of a decoder. Node and libvips take 90 MiB before the first image, which itself may have 20 MiB. */
export const leastDecoderMemoryMb = 128;

/** Milliseconds between two measurements of its memory by a decoder at work. Memory fills at about 1 MiB a millisecond. */
export const decoderWeighingIntervalMs = 10;

/** Characters that are kept of a decoder's output on standard error while it starts. */
export const decoderComplaintChars = 2000;

/** Compressed data of a PNG that is unpacked at once. */
export const gatheredBytes = 128 * 1024;
/** Unpacked data is checked in pieces of this size. */
export const inflatedChunkBytes = 256 * 1024;

/** Scans of a progressive JPEG. Encoders make about ten, and each goes over all pixels for a few bytes. */
export const maxJpegScans = 100;

/**
 * The most pixels of a JPEG of several scans that are decoded: 24 MB of coefficients, or 32 MB with four inks. 50 megapixels took 390
 * to 510 MiB.
 */
export const stripPixels = 4_000_000;
/** The least rows that are decoded of such a JPEG: two rows of the largest blocks that exist. */
export const leastStripRows = 64;

/** Images with more pixels are decoded at an eighth of their size. All of the file is read, and fewer pixels are kept. */
export const shrunkFromPixels = 1_000_000;
