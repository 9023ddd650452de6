/**
 * Bounds of the built-in models. They keep one request from taking a machine's memory or a worker's time; what a caller may
 * ask for is decided by the catalog and the API, well inside them.
 */

const minuteMs = 60_000;

/** Threads that paint, film and play. */
export const rendering = {
  name: "rendering",
  /** For one task, in ms: ten times what the longest film takes on two slow cores. */
  timeoutMs: 15 * minuteMs,
  /** Without work for so long, in ms, a thread ends and gives back what a large film needed. */
  idleMs: 15_000,
  /** A job waits no longer for its account's turn, in ms: as long as a job may take. */
  waitMs: 30 * minuteMs,
} as const;

/** Threads that speak: two, and one at most for an account, so that the longest speech leaves a thread to the others. */
export const speaking = {
  name: "speaking",
  threads: 2,
  /** For one speech, in ms: ten times what the longest takes on two slow cores. */
  timeoutMs: 3 * minuteMs,
  idleMs: 15_000,
  /** The longest text takes some seconds of a thread. */
  share: { places: 2, each: { places: 1, waiting: 64 }, waitMs: 10 * minuteMs },
} as const;

/** Threads that think of text: two, and one at most for an account. */
export const thinking = {
  name: "thinking",
  threads: 2,
  /** For one thought, in ms: a hundred times what a long one takes, so that a busy machine ends no sound thread. */
  timeoutMs: 30_000,
  /** In ms: starting a thread anew takes 400, most of it for the tokenizer. */
  idleMs: 10 * minuteMs,
  /** A thought takes a few ms, so 1,024 are a few seconds of them. */
  share: { places: 2, each: { places: 1, waiting: 1_024 }, waitMs: 30_000 },
} as const;

/** Bounds of pictures and films. */
export const pictureLimits = {
  /** Sides in pixels: up to a 2k picture of a 21:9 shape, with room. */
  leastSide: 16,
  longestSide: 5_120,
  /** Area of a picture in pixels: twice that of a 2k picture, which takes 200 MiB while it is painted. */
  imageArea: 8_388_608,
  /** Area of a film's frame in pixels: 21:9 at 1080p, with room. */
  videoArea: 2_800_000,
  /** Longest film, in seconds: twice the longest one that the shipped catalog offers. */
  videoSeconds: 30,
  /** Pixels of one reference: what the verification of uploads lets pass. */
  referencePixels: 50_000_000,
} as const;

/** Frames a second where none are asked for: cinema's pace, and smooth enough for slow pans. */
export const usualFramesPerSecond = 24;
/** Symbols of a prompt that are looked at for the caption; what fits is far fewer. */
export const captionSymbols = 700;
/** Characters of lyrics that are sung; the rest cannot fit into a minute. */
export const lyricsCharacters = 4_000;
