import {
  DEFAULT_FRAMES_PER_SECOND,
  IMAGE_TIMEOUT_MS,
  MAX_FRAMES_PER_SECOND,
  MAX_IMAGE_PIXELS,
  MAX_MUSIC_UNITS,
  MAX_PROMPT_UNITS,
  MAX_REFERENCES,
  MAX_SIDE_PIXELS,
  MAX_SPEECH_SPEED,
  MAX_SPEECH_UNITS,
  MAX_VIDEO_PIXELS,
  MAX_VIDEO_SECONDS,
  MIN_SIDE_PIXELS,
  MIN_SPEECH_SPEED,
  MUSIC_TIMEOUT_MS,
  SPEECH_THREADS,
  SPEECH_TIMEOUT_MS,
  VIDEO_TIMEOUT_MS,
} from "./limits.ts";
import { Pool } from "./pool.ts";
import type {
  ImageRequest,
  ImageResult,
  MusicRequest,
  SoundResult,
  SpeechRequest,
  VideoRequest,
  VideoResult,
} from "./tasks.ts";

export {
  type Dimensions,
  type ImageShape,
  imageDimensions,
  videoDimensions,
} from "./dimensions.ts";
export { RenderError, type RenderFailure } from "./errors.ts";
export type {
  AudioChannels,
  ImageRequest,
  ImageResult,
  MusicRequest,
  SoundResult,
  SpeechRequest,
  VideoRequest,
  VideoResult,
} from "./tasks.ts";

/** How a caller leaves a rendering. */
export type RenderOptions = { readonly signal?: AbortSignal | undefined };

/** Gets whole percents, rising, 100 not guaranteed before the result. */
export type ProgressListener = (percent: number) => void;

/**
 * Makes real media files out of words, the same bytes for the same request. All work happens in threads:
 * the caller's event loop stays free. Requests outside the limits reject with `RangeError`, an aborted
 * one with its signal's reason once its work has stopped, all else with `RenderError`.
 */
export type Renderer = AsyncDisposable & {
  readonly image: (request: ImageRequest, options?: RenderOptions) => Promise<ImageResult>;
  /** Writes an MP4 (H.264, and AAC where sound is wanted) to `outFile`, which appears complete. */
  readonly video: (
    request: VideoRequest & { readonly onProgress?: ProgressListener | undefined },
    options?: RenderOptions,
  ) => Promise<VideoResult>;
  readonly speech: (request: SpeechRequest, options?: RenderOptions) => Promise<SoundResult>;
  readonly music: (
    request: MusicRequest,
    options?: RenderOptions & { readonly onProgress?: ProgressListener | undefined },
  ) => Promise<SoundResult>;
};

/**
 * Creates a renderer with at most `threads` threads at work (a thread fills one core), and two more for speech: its callers
 * wait for their answers, so it does not stand in line behind films.
 */
export function createBuiltinRenderer({ threads }: { readonly threads: number }): Renderer {
  const pool = new Pool(threads);
  const speechPool = new Pool(SPEECH_THREADS);
  return {
    image: async (request, { signal } = {}) => {
      checkImage(request);
      return await pool.run("image", request, { timeoutMs: IMAGE_TIMEOUT_MS, signal });
    },
    video: async ({ onProgress, ...request }, { signal } = {}) => {
      checkVideo(request);
      return await pool.run("video", request, { timeoutMs: VIDEO_TIMEOUT_MS, signal, onProgress });
    },
    speech: async (request, { signal } = {}) => {
      checkSpeech(request);
      return await speechPool.run("speech", request, { timeoutMs: SPEECH_TIMEOUT_MS, signal });
    },
    music: async (request, { signal, onProgress } = {}) => {
      checkMusic(request);
      return await pool.run("music", request, { timeoutMs: MUSIC_TIMEOUT_MS, signal, onProgress });
    },
    async [Symbol.asyncDispose]() {
      await Promise.all([pool[Symbol.asyncDispose](), speechPool[Symbol.asyncDispose]()]);
    },
  };
}

function checkImage(request: ImageRequest): void {
  checkPicture(request, MAX_IMAGE_PIXELS);
}

function checkVideo(request: VideoRequest): void {
  const { width, height, durationSeconds, fps = DEFAULT_FRAMES_PER_SECOND } = request;
  checkPicture(request, MAX_VIDEO_PIXELS);
  need(width % 2 === 0 && height % 2 === 0, "both sides of a video are even");
  need(durationSeconds > 0 && durationSeconds <= MAX_VIDEO_SECONDS, "durationSeconds");
  need(Number.isInteger(fps) && fps >= 1 && fps <= MAX_FRAMES_PER_SECOND, "fps");
}

function checkPicture(
  request: Pick<ImageRequest, "prompt" | "width" | "height" | "references">,
  maxPixels: number,
): void {
  const { prompt, width, height, references = [] } = request;
  need(prompt.length <= MAX_PROMPT_UNITS, "the prompt's length");
  for (const side of [width, height]) {
    need(Number.isInteger(side) && side >= MIN_SIDE_PIXELS && side <= MAX_SIDE_PIXELS, "a side");
  }
  need(width * height <= maxPixels, "the picture's area");
  need(references.length <= MAX_REFERENCES, "the number of references");
}

function checkSpeech({ text, speed }: SpeechRequest): void {
  need(text.length > 0 && text.length <= MAX_SPEECH_UNITS, "the text's length");
  need(speed >= MIN_SPEECH_SPEED && speed <= MAX_SPEECH_SPEED, "speed");
}

function checkMusic({ title, description = "" }: MusicRequest): void {
  need(title.length + description.length <= MAX_MUSIC_UNITS, "the description's length");
}

function need(holds: boolean, what: string): void {
  if (!holds) throw new RangeError(`outside the renderer's limits: ${what}`);
}
