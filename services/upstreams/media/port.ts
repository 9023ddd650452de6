import type { Readable } from "node:stream";
import type { SoundFormat } from "#kit/sound/formats.ts";
import type { ModelCall, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** What a job asks for, validated and with every default filled in. No bytes of references. */
export type GenerationRequest = GenerationExtras &
  (
    | {
        kind: "image";
        prompt: string;
        count: number;
        /** Pixels of each output. */
        width: number;
        height: number;
        /** As the caller put it, for upstreams that take the same words; undefined where not sent. */
        size: string | undefined;
        resolution: string | undefined;
        aspectRatio: string | undefined;
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
        /** The second reference is the last frame. */
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

/** What a request may say of every kind, where its model takes that. */
export interface GenerationExtras {
  /** What is not to be seen or heard. */
  negativePrompt?: string | undefined;
  /** 0 to 2,147,483,647: the same request with the same seed may be made again. */
  seed?: number | undefined;
}

/** A reference image in our store, verified. */
export interface ReferenceBytes {
  mimeType: string;
  /** Default: the largest that there may be. */
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
  /** 0 where it does not apply. */
  durationSeconds: number;
}

/** One attempt at a job's generation. */
export interface GenerationTask {
  accountId: string;
  jobId: string;
  /** Sent where the upstream takes an idempotency key: the job's id, the same for every attempt. */
  idempotencyKey: string;
  request: GenerationRequest;
  upstreamModel: string;
  /** How the model is called there for what is asked; there where its upstream is called by a template. */
  call?: ModelCall | undefined;
  upstream: Upstream;
  references: readonly ReferenceBytes[];
  /** The upstream's id of the task, stored by an earlier attempt: it is picked up again, never started a second time. */
  resumeId: string | undefined;
  /**
   * To be awaited right before a request that begins the generation is sent: should this attempt die, the next one knows
   * that the upstream may be at it already. Rejects where this attempt has lost the job.
   */
  sending(): Promise<void>;
  /**
   * To be awaited as soon as the upstream has named its task, or before it is sent where we name it; rejects where this
   * attempt has lost the job.
   */
  saveResumeId(id: string): Promise<void>;
  /** 0 to 99; may be called often. A place in an upstream's queue is no progress: callers are told none. */
  progress(percent: number): void;
  /** Stores one output under a write-once name of this attempt and answers where it lies. `source` is read to its end. */
  store(
    source: Readable | Uint8Array,
    mimeType: string,
  ): Promise<{ blobKey: string; sizeBytes: number; sha256: string }>;
  /** Aborts when the attempt lost its lease, is handed back, its job was cancelled, or the deadline passed: touch nothing more. */
  signal: AbortSignal;
}

/** A task at an upstream whose job has ended. */
export interface CancelTask {
  jobId: string;
  kind: GenerationRequest["kind"];
  upstreamModel: string;
  upstream: Upstream;
  /** The upstream's id of the task, as `saveResumeId` had it. */
  resumeId: string;
  signal: AbortSignal;
}

/** How a generation went wrong. */
export type GenerationFault =
  /** For good: the upstream refused or failed, or its bytes are not what they should be. */
  | "failed"
  /** For good: refused for its content. */
  | "content_policy"
  /** For good: another deployment of this API took the job, and no upstream of its own did in time. */
  | "unavailable"
  /** The upstream would not take the job: it is offered again later. */
  | "not_taken"
  /** The upstream says that it broke off: nothing came of it, and another attempt may begin anew. */
  | "broke_off"
  /** The upstream's answer is unknown (connection lost, 5xx): another attempt may resume it, or repeat it where that is safe. */
  | "unknown";

/** What an upstream that would not take a job did instead. */
export type Refusal =
  /** 429. */
  | "too_many_requests"
  /** 503; before the job was sent any 5xx. */
  | "unavailable"
  /** No connection came about. */
  | "unreachable"
  /** The operator's account there has run empty: the operator is told, and callers are not blamed. */
  | "account_empty"
  /** It denies what the catalog configures (its key, the model): waiting mends nothing, another upstream may. */
  | "denied";

/** What `generate` rejects with, apart from the signal's reason. Never carries upstream's own words in `message`. */
export class GenerationError extends Error {
  override readonly name = "GenerationError";
  readonly fault: GenerationFault;
  constructor(fault: GenerationFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}

/** An upstream would not take the job. */
export class NotTakenError extends GenerationError {
  readonly refusal: Refusal;
  /** What `Retry-After` asked for, in ms. */
  readonly retryAfterMs: number | undefined;
  /** The upstream has certainly not begun anything on this request. */
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
 * The upstream has spoken and will be paid for it, but its answer is not kept: it is larger than the largest sound that is, or
 * there is no room for it in memory.
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
  /** One that the protocols of all its upstreams can make. */
  format: SoundFormat;
  upstreamModel: string;
  /** In the order of trying. */
  upstreams: readonly Upstream[];
  /**
   * To be called right before a request is sent that makes an upstream speak: from then on it may cost money, also where the
   * caller leaves. Throws where the request is no longer wanted.
   */
  sending(): void;
  /**
   * To be awaited before so many bytes of the sound lie in memory, in all: resolves when there is room for them. Rejects with an
   * {@link UnkeptSpeechError} where there is none in time, or with the signal's reason.
   */
  reach(bytes: number): Promise<void>;
  signal: AbortSignal;
}

/** Generates media at upstreams, `builtin` included. */
export interface MediaUpstreams {
  /**
   * Resolves when every output is verified and in our store; as many as were asked for, less the pictures that the upstream says
   * it refused, else rejects `failed`.
   */
  generate(task: GenerationTask): Promise<GeneratedOutput[]>;
  /**
   * Takes a task back at its upstream. Resolves with true where the upstream says that it will not go on: what it made before may
   * cost the operator all the same. False where it was finished, is unknown there, cannot be reached, or its protocol cannot
   * cancel. Rejects with nothing but the signal's reason.
   */
  cancel(task: CancelTask): Promise<boolean>;
  /** Resolves with a whole, verified sound of the format that was asked for. Rejects as `generate` does, with an {@link UnkeptSpeechError}, and refuses where the account has too many waiting. */
  speak(task: SpeechTask): Promise<{ bytes: Uint8Array; durationSeconds: number }>;
}
