/** Images that wait for a decoder; the next is refused as `busy`. They stay in memory so long. */
export const queuedImages = 64;

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
