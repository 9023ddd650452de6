import type { SoundFormat } from "#kit/sound/formats.ts";
import type { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { KeyHeader } from "./call.ts";

/** Kinds of models, as the catalog names them. */
export type ServedKind =
  | "chat"
  | "image"
  | "video"
  | "speech"
  | "music"
  | "embedding"
  | "transcription";

/** Keys that every upstream with an address has in the catalog, and that a protocol may add or lack. */
export type UpstreamKey =
  | (typeof remoteKeys)[number]
  | (typeof jobKeys)[number]
  | "inlineImages"
  | "outputLimit"
  | "references"
  | "tokenDelayMs";

/** What every upstream that is called over HTTP takes in the catalog. */
export const remoteKeys = [
  "baseUrl",
  "apiKeyEnv",
  "timeoutMs",
  "idleTimeoutMs",
  "connectTimeoutMs",
  "maxConcurrent",
] as const;

/** What every such upstream that makes images, videos or music takes beside these. */
export const jobKeys = ["chargesWhenCancelled", "lostAnswer"] as const;

/**
 * What an upstream protocol can do: its row in the table of {@link file://./protocols.ts}. It is data without drivers, so that the
 * gateway, the catalog and the services all read the same row.
 */
export interface Capabilities {
  /** What the services call it among themselves. */
  wire: UpstreamProtocol;
  /** Generated in this process: it has no address, and its jobs take this process's places. */
  isLocal?: true;
  /** How its key is sent; absent: as `Authorization: Bearer`. */
  key?: KeyHeader;
  /** Statuses beside 402 by which it refuses what an account without money asks for. */
  emptyAccount?: readonly number[];
  /** What an answer of it says, as its `detail`, where a result is asked for before it is there. */
  tooEarly?: string;
  /** Keys of its entries under `upstreams` in the catalog. */
  keys: readonly UpstreamKey[];
  /**
   * Its models have each an input of their own: the catalog says by a template (key `call` of a model) what goes into it. The
   * model is one of a name there, or a workflow, a graph in a file beside the catalog.
   */
  callsBy?: "template" | "workflow";
  /** Kinds of models that it serves, each with what it can do there. */
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

/** What a protocol can do for text. */
export interface TextAbilities {
  /** Serves `/responses` and `/responses/compact`. */
  responses: boolean;
  /** Chat Completions are asked for as such, or as Responses that are translated here. */
  chat: "native" | "translated";
  /** Takes PDFs and sounds; absent: text and images alone. */
  files?: true;
}

/** What a protocol can do for jobs of one kind. */
export interface JobAbilities {
  /**
   * May a request that begins a generation be sent again where its answer was lost? `repeatable`: it takes our idempotency key, or costs
   * nothing. `once`: a second one would be paid for as well.
   */
  submit: "once" | "repeatable";
  /** Names its task, so that a later attempt goes on with it after a crash: the driver calls `saveResumeId`. */
  resume: boolean;
  /** Takes back a task that it has named: the driver has `cancel`. */
  cancel: boolean;
  /** What it tells of a task under way: a percentage, its place in a queue, each finished output, or nothing. */
  progress: "percent" | "queue" | "outputs" | "none";
  /** How it is given reference images; absent: it takes none. */
  references?: ReferenceAbilities;
  /** Fields of a request that not every model knows; absent: none, or what the model's template places. */
  takes?: readonly OptionalField[];
}

/** A field of a job's request that a model knows or does not, by the names of the public API and of templates. */
export type OptionalField = "seed" | "negativePrompt";

/** How reference images get to an upstream. */
export interface ReferenceAbilities {
  /** In the request's form, in its JSON as data URIs, uploaded first and named in the request, or in memory. */
  sent: "form" | "inline" | "upload" | "memory";
  /** Most that one request may have; absent: as many as the catalog allows. */
  most?: number;
}

/** What a protocol can do for speech. */
export interface SpeechAbilities {
  /** As {@link JobAbilities.submit}. */
  submit: "once" | "repeatable";
  /** What its sounds can be in; `mp3` is always among them. */
  formats: readonly SoundFormat[];
  /** Seconds of the longest sound that it makes: what would be longer it speaks faster. Absent: as long as the text is. */
  longestSeconds?: number;
  /** Its voices have ids of its own, which no other protocol knows. */
  ownVoices?: true;
}
