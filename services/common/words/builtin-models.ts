import type { JsonObject } from "#kit/base/json.ts";
import type { soundTypes } from "#kit/sound/formats.ts";

/**
 * The models that are built in, as the drivers of text and media see them: services/builtin makes them, the host hands them
 * to the services.
 */

/** For whom a built-in model works: accounts share its threads, and an abort ends the work. */
export interface BuiltinCaller {
  readonly accountId: string;
  readonly signal: AbortSignal;
  /** Called when the account's turn has come and the work begins; where it throws, there is none. */
  readonly onStart?: () => void;
}

/** A text model in this process. Bodies and answers have the Responses format; an answer has its id, status, output and usage. */
export interface BuiltinText extends AsyncDisposable {
  /** Rejects with `UpstreamError`, a refusal where the account asks too much at once, or the signal's reason. */
  respond(body: JsonObject, caller: BuiltinCaller): Promise<JsonObject>;
  /** As {@link respond}; the output is one compaction. */
  compact(body: JsonObject, caller: BuiltinCaller): Promise<JsonObject>;
}

/** The sound of a video. */
export type AudioChannels = "none" | "mono" | "stereo";

/** A picture to paint; sides in pixels, `seed` tells apart the pictures of one request. */
export type ImageRequest = {
  readonly prompt: string;
  readonly width: number;
  readonly height: number;
  /** Encoded images (JPEG, PNG, WebP) that show in the picture. */
  readonly references?: readonly Uint8Array[];
  readonly seed?: number;
};

export type ImageResult = {
  readonly bytes: Uint8Array;
  readonly mimeType: "image/png";
  readonly width: number;
  readonly height: number;
};

/** A video to render into `outFile`; both sides are even, the duration is in seconds. */
export type VideoRequest = {
  readonly prompt: string;
  readonly width: number;
  readonly height: number;
  readonly durationSeconds: number;
  /** Frames a second, default 24. */
  readonly fps?: number;
  /** The first is the first frame, the last of several the last frame, others lie between. */
  readonly references?: readonly Uint8Array[];
  readonly audio: AudioChannels;
  readonly outFile: string;
  /** Another one gives another result; default none. */
  seed?: number;
};

export type VideoResult = {
  readonly width: number;
  readonly height: number;
  readonly durationSeconds: number;
  readonly sizeBytes: number;
};

/**
 * Longest speech that is built in, in seconds: prose of 4,096 characters at the normal pace takes five to six minutes. Digits are spelled
 * out and pauses add up, so other texts would be an hour and a half at the slowest pace, and a thread's two minutes.
 * What would be longer is spoken faster.
 */
export const longestSpeechSeconds = 360;

/** A text to speak. `voice` may be any name; each sounds different. `speed` is 0.25 to 4; `format` is `mp3` by default. */
export type SpeechRequest = {
  readonly text: string;
  readonly voice: string;
  readonly language?: string | undefined;
  readonly speed: number;
  readonly format?: "mp3" | "wav" | "pcm";
};

/** A tune to play; `lyrics` are sung in mode `lyrics`. */
export type MusicRequest = {
  readonly mode: "instrumental" | "lyrics";
  readonly title: string;
  readonly description?: string | undefined;
  readonly lyrics?: string | undefined;
  /** Another one gives another result; default none. */
  seed?: number;
};

export type SoundResult = {
  readonly bytes: Uint8Array;
  readonly mimeType: (typeof soundTypes)["mp3" | "wav" | "pcm"];
  readonly durationSeconds: number;
};

/** Gets whole percents, rising, 100 not guaranteed before the result. */
export type ProgressListener = (percent: number) => void;

/**
 * Makes real media files out of words, the same bytes for the same request. All work happens in threads: the caller's event
 * loop stays free, and accounts take turns. An aborted request rejects with its signal's reason once its work has stopped;
 * else requests outside the limits reject with `RangeError`, work that failed with `BuiltinError`, and work that may do better
 * another time with `UpstreamError`, or with a refusal where the account has too many requests waiting.
 */
export interface BuiltinRenderer extends AsyncDisposable {
  image(request: ImageRequest, caller: BuiltinCaller): Promise<ImageResult>;
  /** Writes an MP4 (H.264, and AAC where sound is wanted) to `outFile`, which appears complete. */
  video(
    request: VideoRequest,
    caller: BuiltinCaller,
    onProgress?: ProgressListener,
  ): Promise<VideoResult>;
  speech(request: SpeechRequest, caller: BuiltinCaller): Promise<SoundResult>;
  music(
    request: MusicRequest,
    caller: BuiltinCaller,
    onProgress?: ProgressListener,
  ): Promise<SoundResult>;
}

/** The work itself failed, and would do so again. The message never holds a prompt, a text or a file's name. */
export class BuiltinError extends Error {
  override readonly name = "BuiltinError";
  /** Of a file operation that failed: `ENOSPC`. */
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}
