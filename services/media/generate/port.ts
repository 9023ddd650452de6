import type { Readable } from "node:stream";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** What a job asks for, validated and with every default filled in. No bytes of references. */
export type GenerationRequest =
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
    };

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
  upstream: Upstream;
  references: readonly ReferenceBytes[];
  /** The upstream's id of the task, stored by an earlier attempt: it is picked up again, never started a second time. */
  resumeId: string | undefined;
  /**
   * To be awaited right before a request that begins the generation is sent: should this attempt die, the next one knows
   * that the upstream may be at it already. Rejects where this attempt has lost the job.
   */
  sending(): Promise<void>;
  /** To be awaited as soon as the upstream has named its task; rejects where this attempt has lost the job. */
  saveResumeId(id: string): Promise<void>;
  /** 0 to 99; may be called often. */
  progress(percent: number): void;
  /** Stores one output under a write-once name of this attempt and answers where it lies. `source` is read to its end. */
  store(
    source: Readable | Uint8Array,
    mimeType: string,
  ): Promise<{ blobKey: string; sizeBytes: number; sha256: string }>;
  /** Aborts when the attempt lost its lease, is handed back, or the deadline passed: touch nothing more. */
  signal: AbortSignal;
}

/** How a generation went wrong. */
export type GenerationFault =
  /** For good: the upstream refused or failed, or its bytes are not what they should be. */
  | "failed"
  /** For good: refused for its content. */
  | "content_policy"
  /** The upstream would not take the job: it is offered again later. */
  | "not_taken"
  /** The upstream says that it broke off: nothing came of it, and another attempt may begin anew. */
  | "broke_off"
  /** The upstream's answer is unknown (connection lost, 5xx): another attempt may resume it, or repeat it where that is safe. */
  | "unknown";

/** What an upstream that would not take a job did instead: 429, 503 (before the job was sent: any 5xx), or no connection. */
export type Refusal = "too_many_requests" | "unavailable" | "unreachable";

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

/** A speech request, validated. */
export interface SpeechTask {
  accountId: string;
  requestId: string;
  text: string;
  voice: string;
  language: string | undefined;
  speed: number;
  upstreamModel: string;
  /** In the order of trying. */
  upstreams: readonly Upstream[];
  /**
   * To be called right before a request is sent that makes an upstream speak: from then on it may cost money, whatever the
   * caller does. Throws where the request is no longer wanted.
   */
  sending(): void;
  signal: AbortSignal;
}

/** Generates media at upstreams, `builtin` included. */
export interface MediaUpstreams extends AsyncDisposable {
  /** Resolves when every output is verified and in our store; as many as were asked for, else rejects `failed`. */
  generate(task: GenerationTask): Promise<GeneratedOutput[]>;
  /** Resolves with a whole, verified MP3. Rejects as `generate` does, and refuses where the account has too many waiting. */
  speak(task: SpeechTask): Promise<{ bytes: Uint8Array; durationSeconds: number }>;
}
