// The agreement between the media service and the upstreams of media: a task, its output, its failures. The drivers implement it
// behind `index.ts`.

import type { Readable } from "node:stream";
import type { SoundFormat } from "#kit/sound/formats.ts";
import type { ModelCall, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** A job's request, validated and with every default filled in. It has no bytes of references. */
export type GenerationRequest = GenerationExtras &
  (
    | {
        kind: "image";
        prompt: string;
        count: number;
        /** Pixels of each output. */
        width: number;
        height: number;
        /** The caller's own value, for upstreams that take the same words. Undefined where the caller sent none. */
        size: string | undefined;
        resolution: string | undefined;
        aspectRatio: string | undefined;
        /** The caller's own choice, where the model has a price for it. Absent: none. */
        quality?: string;
        /** The last of the references is a mask: a PNG of the first one's size, transparent where the image may change. Absent: it has none. */
        hasMask?: boolean;
      }
    | {
        kind: "video";
        prompt: string;
        mode: "t2v" | "i2v";
        durationSeconds: number;
        resolution: string;
        /** "auto" or a ratio. */
        aspectRatio: string;
        audio: "none" | "mono" | "stereo";
        /** Is the second reference the last frame? */
        firstLastFrame: boolean;
      }
    | {
        kind: "music";
        mode: "instrumental" | "lyrics";
        title: string;
        description: string | undefined;
        lyrics: string | undefined;
      }
  );

/** Fields of a request of every kind, where its model takes them. */
export interface GenerationExtras {
  /** Things that should not be seen or heard in the output. */
  negativePrompt?: string | undefined;
  /** 0 to 2,147,483,647. The same request with the same seed may give the same output. */
  seed?: number | undefined;
}

/** A reference image in our store, verified. */
export interface ReferenceBytes {
  mimeType: string;
  /** Default: the largest allowed size. */
  sizeBytes?: number;
  width: number;
  height: number;
  /** Opens its bytes. */
  open(): Promise<Readable>;
}

/** One output, in our store. */
export interface GeneratedOutput {
  blobKey: string;
  mimeType: string;
  sizeBytes: number;
  sha256: string;
  width: number;
  height: number;
  /** 0 where there is no duration. */
  durationSeconds: number;
}

/** One attempt at a job's generation. */
export interface GenerationTask {
  accountId: string;
  jobId: string;
  /** Sent where the upstream takes an idempotency key. It is the job's id, the same for every attempt. */
  idempotencyKey: string;
  request: GenerationRequest;
  upstreamModel: string;
  /** The model's call at the upstream for this request. Present where a template calls the upstream. */
  call?: ModelCall | undefined;
  upstream: Upstream;
  references: readonly ReferenceBytes[];
  /** The upstream's id of the task, stored by an earlier attempt. The task is resumed, never started a second time. */
  resumeId: string | undefined;
  /**
   * To be awaited right before a request that begins the generation is sent. If this attempt dies, the next one knows that the upstream
   * may be working already. Rejects where this attempt has lost the job.
   */
  sending(): Promise<void>;
  /**
   * To be awaited as soon as the upstream has named its task, or before the request is sent where we name the task. Rejects where this
   * attempt has lost the job.
   */
  saveResumeId(id: string): Promise<void>;
  /** 0 to 99. May be called often. A place in an upstream's queue is no progress, and callers do not see it. */
  progress(percent: number): void;
  /** Stores one output under a write-once name of this attempt and answers its place. `source` is read to its end. */
  store(
    source: Readable | Uint8Array,
    mimeType: string,
  ): Promise<{ blobKey: string; sizeBytes: number; sha256: string }>;
  /**
   * Aborts when the attempt lost its lease or is handed back, its job was cancelled, or the deadline passed. After that the attempt
   * must change nothing.
   */
  signal: AbortSignal;
}

/** A task at an upstream whose job has ended. */
export interface CancelTask {
  jobId: string;
  kind: GenerationRequest["kind"];
  upstreamModel: string;
  upstream: Upstream;
  /** The upstream's id of the task, from `saveResumeId`. */
  resumeId: string;
  signal: AbortSignal;
}

/** The kinds of a generation's failure. */
export type GenerationFault =
  /** Final: the upstream refused or failed, or its bytes are not the expected output. */
  | "failed"
  /** Final: refused for its content. */
  | "content_policy"
  /** Final: another deployment of this API took the job, and no upstream of that deployment did in time. */
  | "unavailable"
  /** The upstream did not take the job. It is offered again later. */
  | "not_taken"
  /** The upstream answered that it broke off without output. Another attempt may begin from the start. */
  | "broke_off"
  /** The upstream's answer is unknown (connection lost, 5xx). Another attempt may resume it, or repeat it where that is safe. */
  | "unknown";

/** The way in which an upstream refused a job. */
export type Refusal =
  /** 429. */
  | "too_many_requests"
  /** 503. Before the job was sent, any 5xx. */
  | "unavailable"
  /** No connection could be made. */
  | "unreachable"
  /** The operator's account there has no money left. The operator gets a message, and the error does not blame the caller. */
  | "account_empty"
  /** It refuses the configuration in the catalog (its key, the model). Waiting does not help, but another upstream may. */
  | "denied";

/** The error of `generate`, apart from the signal's reason. `message` never carries the upstream's own words. */
export class GenerationError extends Error {
  override readonly name = "GenerationError";
  readonly fault: GenerationFault;
  constructor(fault: GenerationFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** An upstream did not take the job. */
export class NotTakenError extends GenerationError {
  readonly refusal: Refusal;
  /** The wait that `Retry-After` asked for, in ms. */
  readonly retryAfterMs: number | undefined;
  /** Has the upstream surely not begun anything for this request? */
  readonly isCertain: boolean;
  constructor(
    refusal: Refusal,
    details: { retryAfterMs?: number | undefined; isCertain: boolean; cause: unknown },
  ) {
    super("not_taken", `the upstream did not take the job: ${refusal}`, { cause: details.cause });
    this.refusal = refusal;
    this.retryAfterMs = details.retryAfterMs;
    this.isCertain = details.isCertain;
  }
}

/**
 * The upstream has spoken and will be paid, but its answer is not kept. It is larger or longer than any allowed speech, or memory has no
 * room for it.
 */
export class UnkeptSpeechError extends GenerationError {
  constructor(cause: unknown) {
    super("failed", "the upstream has spoken what cannot be kept", { cause });
  }
}

/** A speech request, validated. */
export interface SpeechTask {
  accountId: string;
  requestId: string;
  text: string;
  voice: string;
  language: string | undefined;
  speed: number;
  /** A format that the protocols of all its upstreams can make. */
  format: SoundFormat;
  upstreamModel: string;
  /** In the order in which they are tried. */
  upstreams: readonly Upstream[];
  /**
   * To be called right before a request is sent that makes an upstream speak. From then on it may cost money, even where the caller
   * leaves. Throws where the request is not wanted any longer.
   */
  sending(): void;
  /**
   * To be awaited before this many bytes of the speech, in all, are in memory. Resolves when there is room for them. Rejects with an
   * {@link UnkeptSpeechError} where no room comes free in time, or with the signal's reason.
   */
  reach(bytes: number): Promise<void>;
  /**
   * Gets the pieces of the audio as they come, in their order. They begin like the format, and are measured only when all are there.
   * From the first one on nothing is repeated, here or at another upstream. Absent: no caller listens.
   */
  hear?: ((piece: Uint8Array) => void) | undefined;
  /** Called at the end of each try at a lane. `failure`: its kind and HTTP status. Absent: the upstream spoke. */
  tried?(lane: string, failure?: { kind: string; status: number | undefined }): void;
  signal: AbortSignal;
}

/** Generates media at upstreams, `builtin` included. */
export interface MediaUpstreams {
  /**
   * The index of the upstream at which a job begins that is at `at`: the same one, or where it rests, the next in turn that does not.
   * `upstreamModel`: their name for the model. Each process knows by itself which upstreams rest. Where all do, the same one.
   */
  placeToBegin(upstreams: readonly Upstream[], upstreamModel: string, at: number): number;
  /**
   * Resolves when every output is verified and in our store. These are the requested number, minus the images that the upstream
   * reported as refused. Otherwise rejects with `failed`.
   */
  generate(task: GenerationTask): Promise<GeneratedOutput[]>;
  /**
   * Cancels a task at its upstream. True where the upstream confirms that it will not go on. Work before that may still cost the
   * operator. False where the task was finished, is unknown there or cannot be reached, or its protocol cannot cancel. Rejects only
   * with the signal's reason.
   */
  cancel(task: CancelTask): Promise<boolean>;
  /**
   * Resolves with complete, verified speech in the requested format. Rejects as `generate` does, or with an {@link UnkeptSpeechError}.
   * Refuses where too many requests of the account wait.
   */
  speak(task: SpeechTask): Promise<{ bytes: Uint8Array; durationSeconds: number }>;
}
