// The agreement about built-in models between the drivers of text and media, which use them, and services/builtin, which makes
// them. The host hands them over, so that no driver loads them.

import type { JsonObject } from "#kit/base/json.ts";
import type { soundTypes } from "#kit/sound/formats.ts";

/** The account for which a built-in model works. Accounts share its threads, and an abort ends the work. */
export interface BuiltinCaller {
  readonly accountId: string;
  readonly signal: AbortSignal;
  /** Called when the account's turn has come, just before the work. Where it throws, no work is done. */
  readonly onStart?: () => void;
}

/** A text model in this process. Bodies and answers have the Responses format. An answer has its id, status, output and usage. */
export interface BuiltinText extends AsyncDisposable {
  /** Rejects with `UpstreamError`, with a refusal where the account has too many requests at once, or with the signal's reason. */
  respond(body: JsonObject, caller: BuiltinCaller): Promise<JsonObject>;
  /** The same as {@link respond}, with one compaction as output. */
  compact(body: JsonObject, caller: BuiltinCaller): Promise<JsonObject>;
}

/** The audio of a video. */
export type AudioChannels = "none" | "mono" | "stereo";

/** An image to paint. Sides are in pixels. `seed` makes the images of one request differ. */
export type ImageRequest = {
  readonly prompt: string;
  readonly width: number;
  readonly height: number;
  /** Encoded images (JPEG, PNG, WebP) that appear in the image. */
  readonly references?: readonly Uint8Array[];
  readonly seed?: number;
};

export type ImageResult = {
  readonly bytes: Uint8Array;
  readonly mimeType: "image/png";
  readonly width: number;
  readonly height: number;
};

/** A video to render into `outFile`. Both sides are even, and the duration is in seconds. */
export type VideoRequest = {
  readonly prompt: string;
  readonly width: number;
  readonly height: number;
  readonly durationSeconds: number;
  /** Frames a second. Default: 24. */
  readonly fps?: number;
  /** The first one is the first frame, the last of several is the last frame, and others lie between. */
  readonly references?: readonly Uint8Array[];
  readonly audio: AudioChannels;
  readonly outFile: string;
  /** Another seed gives another result. Default: none. */
  seed?: number;
};

export type VideoResult = {
  readonly width: number;
  readonly height: number;
  readonly durationSeconds: number;
  readonly sizeBytes: number;
};

/**
 * Longest built-in speech, in seconds. Prose of 4,096 characters at the normal pace takes five to six minutes. Digits are spelled out
 * and pauses add up. So other texts would take an hour and a half at the slowest pace, and two minutes of a thread. A text that would
 * take longer is spoken faster.
 */
export const longestSpeechSeconds = 360;

/** A text to speak. `voice` may be any name, and each gives another voice. `speed` is 0.25 to 4. `format` is `mp3` by default. */
export type SpeechRequest = {
  readonly text: string;
  readonly voice: string;
  readonly language?: string | undefined;
  readonly speed: number;
  readonly format?: "mp3" | "wav" | "pcm";
};

/** A tune to play. `lyrics` are sung in mode `lyrics`. */
export type MusicRequest = {
  readonly mode: "instrumental" | "lyrics";
  readonly title: string;
  readonly description?: string | undefined;
  readonly lyrics?: string | undefined;
  /** Another seed gives another result. Default: none. */
  seed?: number;
};

export type SoundResult = {
  readonly bytes: Uint8Array;
  readonly mimeType: (typeof soundTypes)["mp3" | "wav" | "pcm"];
  readonly durationSeconds: number;
};

/** Called with whole percents, rising. 100 may not come before the result. */
export type ProgressListener = (percent: number) => void;

/**
 * Makes real media files from words, with the same bytes for the same request. All work happens in threads. So the caller's event loop
 * stays free, and accounts take turns. An aborted request rejects with its signal's reason once its work has stopped. Requests outside
 * the limits reject with `RangeError`. Work that failed rejects with `BuiltinError`. Work that may succeed another time rejects with
 * `UpstreamError`, or with a refusal where too many requests of the account wait.
 */
export interface BuiltinRenderer extends AsyncDisposable {
  image(request: ImageRequest, caller: BuiltinCaller): Promise<ImageResult>;
  /** Writes an MP4 (H.264, and AAC where audio is wanted) to `outFile`, which appears complete. */
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
  /** The code of a file operation that failed: `ENOSPC`. */
  readonly code: string | undefined;

  constructor(message: string, code?: string) {
    super(message);
    this.code = code;
  }
}
