// The form in which each protocol declares what it can do. The rows are in the protocols' folders, and `protocols.ts` has them
// all.

import type { SoundFormat } from "#kit/sound/formats.ts";
import type { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { KeyHeader } from "./call.ts";

/** Kinds of models, by their names in the catalog. */
export type ServedKind =
  | "chat"
  | "image"
  | "video"
  | "speech"
  | "music"
  | "embedding"
  | "transcription";

/** Keys of an upstream in the catalog. Those of every upstream with an address come first; a protocol may add keys or lack some. */
export type UpstreamKey =
  | (typeof remoteKeys)[number]
  | (typeof jobKeys)[number]
  | "inlineImages"
  | "autoCache"
  | "betas"
  | "blockTypes"
  | "jobs"
  | "outputLimit"
  | "references"
  | "tokenDelayMs";

/** Keys of every upstream that is called over HTTP. */
export const remoteKeys = [
  "baseUrl",
  "apiKeyEnv",
  "apiKeyEnvs",
  "apiKeyFile",
  "apiKeyStored",
  "timeoutMs",
  "idleTimeoutMs",
  "connectTimeoutMs",
  "maxConcurrent",
] as const;

/** Further keys of every such upstream that makes images, videos or music. */
export const jobKeys = ["chargesWhenCancelled", "lostAnswer"] as const;

/**
 * The abilities of an upstream protocol: its row in the table of {@link file://./protocols.ts}. It is data without drivers, so that the
 * gateway, the catalog and the services all read the same row.
 */
export interface Capabilities {
  /** The services' own name for it. */
  wire: UpstreamProtocol;
  /** It generates in this process. It has no address, and its jobs take this process's places. */
  isLocal?: true;
  /** The way in which its key is sent. Absent: as `Authorization: Bearer`. */
  key?: KeyHeader;
  /** Statuses beside 402 with which it refuses an account without money. */
  emptyAccount?: readonly number[];
  /** The `detail` of its answer where a result is requested before it exists. */
  tooEarly?: string;
  /** Keys of its entries under `upstreams` in the catalog. */
  keys: readonly UpstreamKey[];
  /**
   * Each of its models has an input of its own. A template in the catalog (key `call` of a model) gives the values for it. The model is
   * a named one there, or a workflow: a graph in a file beside the catalog.
   */
  callsBy?: "template" | "workflow";
  /** Kinds of models that it serves, each with its abilities. */
  serves: {
    chat?: TextAbilities;
    image?: JobAbilities;
    video?: JobAbilities;
    music?: JobAbilities;
    speech?: SpeechAbilities;
    /** Serves `/embeddings`. */
    embedding?: true;
    /** Serves `/audio/transcriptions`. */
    transcription?: true;
  };
}

/** The abilities of a protocol for text. */
export interface TextAbilities {
  /** Serves `/responses` and `/responses/compact`. */
  responses: boolean;
  /** Serves `/responses` without `/responses/compact`. */
  lacksCompact?: true;
  /** Are Chat Completions sent as such, or as Responses that are translated here? */
  chat: "native" | "translated";
  /** Does it take PDFs and audio, or PDFs alone? Absent: text and images alone. */
  files?: true | "pdf";
}

/** The abilities of a protocol for jobs of one kind. */
export interface JobAbilities {
  /**
   * May a request that begins a generation be sent again where its answer was lost? `repeatable`: it takes our idempotency key, or
   * costs nothing. `once`: a second one would be paid for as well.
   */
  submit: "once" | "repeatable";
  /** Does it name its task, so that a later attempt continues it after a crash? The driver calls `saveResumeId`. */
  resume: boolean;
  /** Can it cancel a task that it has named? The driver has `cancel`. */
  cancel: boolean;
  /** The progress that it reports of a running task: a percentage, its place in a queue, each finished output, or nothing. */
  progress: "percent" | "queue" | "outputs" | "none";
  /** The ways in which it takes reference images. Absent: it takes none. */
  references?: ReferenceAbilities;
  /** For images: a request may name its quality. */
  takesQuality?: true;
  /** For images: a request may have a mask beside its references. A template places it. */
  takesMask?: true;
  /** Fields of a request that only some models know. Absent: none, or those that the model's template places. */
  takes?: readonly OptionalField[];
}

/** A field of a job's request that a model knows or does not, by its name in the public API and in templates. */
export type OptionalField = "seed" | "negativePrompt";

/** The way of reference images to an upstream. */
export interface ReferenceAbilities {
  /** In the request's form, in its JSON as data URIs, uploaded first and named in the request, or in memory. */
  sent: "form" | "inline" | "upload" | "memory";
  /** The most that one request may have. Absent: as many as the catalog allows. */
  most?: number;
}

/** The abilities of a protocol for speech. */
export interface SpeechAbilities {
  /** See {@link JobAbilities.submit}. */
  submit: "once" | "repeatable";
  /** Formats of its speech. `mp3` is always among them. */
  formats: readonly SoundFormat[];
  /** Seconds of the longest speech that it makes. A longer text is spoken faster. Absent: as long as the text needs. */
  longestSeconds?: number;
  /** Its voices have ids that no other protocol knows. */
  ownVoices?: true;
}
