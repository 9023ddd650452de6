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
};

export type VideoResult = {
  readonly width: number;
  readonly height: number;
  readonly durationSeconds: number;
  readonly sizeBytes: number;
};

/** A text to speak. `voice` may be any name; each sounds different. `speed` is 0.25 to 4. */
export type SpeechRequest = {
  readonly text: string;
  readonly voice: string;
  readonly language?: string;
  readonly speed: number;
};

/** A tune to play; `lyrics` are sung in mode `lyrics`. */
export type MusicRequest = {
  readonly mode: "instrumental" | "lyrics";
  readonly title: string;
  readonly description?: string;
  readonly lyrics?: string;
};

export type SoundResult = {
  readonly bytes: Uint8Array;
  readonly mimeType: "audio/mpeg";
  readonly durationSeconds: number;
};

/** Each kind of task with what it takes and gives. */
export type Tasks = {
  readonly image: { readonly request: ImageRequest; readonly result: ImageResult };
  readonly video: { readonly request: VideoRequest; readonly result: VideoResult };
  readonly speech: { readonly request: SpeechRequest; readonly result: SoundResult };
  readonly music: { readonly request: MusicRequest; readonly result: SoundResult };
};

export type TaskKind = keyof Tasks;

/** What a thread is sent. */
export type TaskMessage = {
  readonly [K in TaskKind]: {
    readonly id: number;
    readonly kind: K;
    readonly request: Tasks[K]["request"];
    readonly flag: SharedArrayBuffer;
  };
}[TaskKind];

/**
 * What a thread answers: any number of `progress`, then one of the others. A cancelled task fails like
 * any other; who cancelled it knows.
 */
export type TaskReply =
  | { readonly id: number; readonly type: "progress"; readonly percent: number }
  | { readonly id: number; readonly type: "done"; readonly result: Tasks[TaskKind]["result"] }
  | { readonly id: number; readonly type: "failed"; readonly reason: string };
