/**
 * Bounds of the built-in renderer. They keep one request from taking a machine's memory or a
 * worker's time; what a caller may ask for is decided by the catalog, well inside them.
 */

/** Shortest and longest side of a picture, in pixels: a 2k picture of a 21:9 shape, with room. */
export const MIN_SIDE_PIXELS = 16;
export const MAX_SIDE_PIXELS = 5_120;
/** Area of a picture in pixels: twice that of a 2k picture, which takes 200 MiB while it is painted. */
export const MAX_IMAGE_PIXELS = 8_388_608;
/** Area of a video frame in pixels: 21:9 at 1080p, with room. */
export const MAX_VIDEO_PIXELS = 2_800_000;
/** Longest video, in seconds: twice the longest one that the catalog offers. */
export const MAX_VIDEO_SECONDS = 30;
/** Frames a second where none are asked for: cinema's pace, and smooth enough for slow pans. */
export const DEFAULT_FRAMES_PER_SECOND = 24;
/** Most frames a second: more would only cost time. */
export const MAX_FRAMES_PER_SECOND = 60;
/** Reference images in one request: the most that any model of the catalog takes. */
export const MAX_REFERENCES = 7;
/** Pixels of one reference: what the verification of uploads lets pass. */
export const MAX_REFERENCE_PIXELS = 50_000_000;
/** UTF-16 units of a prompt: the 32,000 characters that the public API takes have at most two each. */
export const MAX_PROMPT_UNITS = 64_000;
/** UTF-16 units of a piece of music's title and description: 1,000 and 32,000 characters. */
export const MAX_MUSIC_UNITS = 66_000;
/** UTF-16 units of a text to speak: 4,096 characters. */
export const MAX_SPEECH_UNITS = 8_192;
/**
 * Longest speech, in seconds: prose of 4,096 characters at the normal pace takes five to six minutes. Digits are spelled
 * out and pauses add up, so other texts would be an hour and a half at the slowest pace, and a thread's two minutes.
 */
export const MAX_SPEECH_SECONDS = 360;
/**
 * Threads for speech: one account has one at most (`builtinSpeech` of the drivers), so that the longest speech of one leaves
 * a thread to the others.
 */
export const SPEECH_THREADS = 2;
/** Slowest and fastest speech, as factors of the normal pace. */
export const MIN_SPEECH_SPEED = 0.25;
export const MAX_SPEECH_SPEED = 4;
/** Symbols of a prompt that are looked at for the caption; what fits is far fewer. */
export const MAX_CAPTION_SYMBOLS = 700;
/** Characters of lyrics that are sung; the rest cannot fit into a minute. */
export const MAX_LYRICS_CHARACTERS = 4_000;

/** Threads of one renderer: a task fills a core, and a worker process has few. */
export const MAX_THREADS = 8;
/** Tasks that may wait for a thread: more than a worker ever claims at once. */
export const MAX_WAITING_TASKS = 256;
/** JavaScript heap of a thread in MiB (pixels and samples lie outside it). */
export const THREAD_HEAP_MIB = 512;
/** How long a cancelled task may take to stop by itself before its thread is ended. */
export const CANCEL_GRACE_MS = 2_000;
/** A thread without work ends after this time and gives its memory back. */
export const IDLE_THREAD_MS = 30_000;

/** Time limits: about ten times what the largest task takes on two slow cores. */
export const IMAGE_TIMEOUT_MS = 120_000;
export const VIDEO_TIMEOUT_MS = 900_000;
export const SPEECH_TIMEOUT_MS = 180_000;
export const MUSIC_TIMEOUT_MS = 180_000;
