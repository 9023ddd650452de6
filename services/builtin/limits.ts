// Bounds of the built-in models. They keep one request from taking a machine's memory or a worker's time. The catalog and the API
// decide what a caller may ask for, well inside them.

const minuteMs = 60_000;

/** Threads that make images, videos and music. */
export const rendering = {
  name: "rendering",
  /** Milliseconds for one task: ten times the time of the longest video on two slow cores. */
  timeoutMs: 15 * minuteMs,
  /** A thread without work for this many ms ends, and gives back the memory of a large video. */
  idleMs: 15_000,
  /** The longest that a job waits for its account's turn, in ms: as long as a job may take. */
  waitMs: 30 * minuteMs,
} as const;

/** Threads that speak. There are two, and at most one for an account, so that the longest speech leaves a thread to the others. */
export const speaking = {
  name: "speaking",
  threads: 2,
  /** Milliseconds for one speech: ten times the time of the longest on two slow cores. */
  timeoutMs: 3 * minuteMs,
  idleMs: 15_000,
  /** The longest text takes some seconds of a thread. */
  share: { places: 2, each: { places: 1, waiting: 64 }, waitMs: 10 * minuteMs },
} as const;

/** Threads that make text. There are two, and at most one for an account. */
export const thinking = {
  name: "thinking",
  threads: 2,
  /** Milliseconds for one text: a hundred times the time of a long one, so that a busy machine does not end a healthy thread. */
  timeoutMs: 30_000,
  /** Milliseconds. Starting another thread takes 400, most of it for the tokenizer. */
  idleMs: 10 * minuteMs,
  /** A text takes a few ms, so 1,024 take a few seconds. */
  share: { places: 2, each: { places: 1, waiting: 1_024 }, waitMs: 30_000 },
} as const;

/** Bounds of images and videos. */
export const pictureLimits = {
  /** Sides in pixels: up to a 2k image of a 21:9 shape, with room to spare. */
  leastSide: 16,
  longestSide: 5_120,
  /** Area of an image in pixels: twice that of a 2k image, which takes 200 MiB while it is painted. */
  imageArea: 8_388_608,
  /** Area of a video's frame in pixels: 21:9 at 1080p, with room to spare. */
  videoArea: 2_800_000,
  /** Longest video, in seconds: twice the longest one that the shipped catalog offers. */
  videoSeconds: 30,
  /** Pixels of one reference: as many as the verification of uploads allows. */
  referencePixels: 50_000_000,
} as const;

/** Frames a second by default: the pace of cinema, and smooth enough for slow pans. */
export const usualFramesPerSecond = 24;
/** Symbols of a prompt that are read for the caption. Far fewer fit. */
export const captionSymbols = 700;
/** Characters of lyrics that are sung. Further ones cannot fit into a minute. */
export const lyricsCharacters = 4_000;
