// Makes the public entry of a model of the catalog. The operator's secrets and costs never get into it.

import {
  imageRatios,
  maxImages,
  maxPromptCharacters,
  maxSpeechCharacters,
  musicModes,
  speechSpeed,
  videoSizes,
} from "#common/words/request-bounds.ts";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import {
  type ChatSpec,
  type EmbeddingSpec,
  type ImageOption,
  type ImageSpec,
  type Model,
  ModelKind,
  NativeAudio,
  SafetyCheck,
  type Snapshot,
  type SpeechSpec,
  VideoMode,
  type VideoOption,
  type VideoSpec,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { fieldsTaken } from "../services/upstreams/optional-fields.ts";
import { servesText } from "../services/upstreams/protocols.ts";
import { chatPricing } from "./model-prices.ts";

/** An entry of `GET /models`: OpenAI's four fields, Anthropic's three, and the fields that a client needs to build a form for the model. */
type CatalogEntry = JsonObject & {
  id: string;
  object: "model";
  created: number;
  owned_by: string;
  type: "model";
  display_name: string;
  created_at: string;
};

/** `created` of every entry. A catalog file has no dates, and clients want a number that does not change. */
const created = 0;
const createdAt = new Date(created).toISOString();
const kindNames: Record<number, string> = {
  [ModelKind.CHAT]: "chat",
  [ModelKind.IMAGE]: "image",
  [ModelKind.VIDEO]: "video",
  [ModelKind.SPEECH]: "speech",
  [ModelKind.MUSIC]: "music",
  [ModelKind.EMBEDDING]: "embedding",
  [ModelKind.TRANSCRIPTION]: "transcription",
} satisfies Record<Known<typeof ModelKind>, string>;

const modeNames: Record<number, string> = {
  [VideoMode.T2V]: "t2v",
  [VideoMode.I2V]: "i2v",
} satisfies Record<Known<typeof VideoMode>, string>;

const safetyNames: Record<number, string> = {
  [SafetyCheck.APPLIED]: "applied",
  [SafetyCheck.NONE]: "none",
  [SafetyCheck.STANDARD]: "standard",
} satisfies Record<Known<typeof SafetyCheck>, string>;

const audioNames: Record<number, string> = {
  [NativeAudio.NONE]: "none",
  [NativeAudio.MONO]: "mono",
  [NativeAudio.STEREO]: "stereo",
} satisfies Record<Known<typeof NativeAudio>, string>;

/** Every value of an enum except UNSPECIFIED. */
type Known<E extends Record<string, number>> = Exclude<E[keyof E], 0>;

/**
 * The public entry of a model, built field by field from public values. The developer prompt, the upstream, its own name for the model
 * and the place of its key are never read into it.
 */
export function toCatalogEntry(model: Model, snapshot: Snapshot): CatalogEntry {
  return {
    id: model.id,
    object: "model",
    created,
    owned_by: "genmesh",
    type: "model",
    display_name: model.name,
    created_at: createdAt,
    kind: kindNames[model.kind] ?? "other",
    name: model.name,
    ...(model.description === "" ? {} : { description: model.description }),
    default: model.isDefault,
    ...lifeFields(model),
    ...specFields(model, snapshot),
  };
}

/** The announced end of a model, where there is one. */
function lifeFields({ deprecatedAtMs, shutdownAtMs }: Model): JsonObject {
  return {
    ...(deprecatedAtMs > 0n
      ? { deprecatedAt: new Date(Number(deprecatedAtMs)).toISOString() }
      : {}),
    ...(shutdownAtMs > 0n ? { shutdownDate: new Date(Number(shutdownAtMs)).toISOString() } : {}),
  };
}

/** The same in headers of the model's own address: `Deprecation` (RFC 9745) and `Sunset` (RFC 8594). */
export function lifeHeaders({ deprecatedAtMs, shutdownAtMs }: Model): Record<string, string> {
  return {
    ...(deprecatedAtMs > 0n ? { deprecation: `@${deprecatedAtMs / 1_000n}` } : {}),
    ...(shutdownAtMs > 0n ? { sunset: new Date(Number(shutdownAtMs)).toUTCString() } : {}),
  };
}

function specFields(model: Model, snapshot: Snapshot): JsonObject {
  const { spec } = model;
  switch (spec.case) {
    case "chat":
      return { ...chatFields(spec.value), responsesCapable: isResponsesCapable(model, snapshot) };
    case "image":
      return { ...imageFields(spec.value), ...optionalFields(model, snapshot) };
    case "video":
      return { ...videoFields(spec.value), ...optionalFields(model, snapshot) };
    case "speech":
      return speechFields(spec.value);
    case "music":
      return {
        modes: [...musicModes],
        creditPrice: Number(spec.value.creditPrice),
        ...optionalFields(model, snapshot),
      };
    case "embedding":
      return embeddingFields(spec.value);
    case "transcription":
      return {
        maxSeconds: Number(spec.value.maxSeconds),
        pricing: { usdMicrosPerMinute: Number(spec.value.usdMicrosPerMinute) },
      };
    case undefined:
      return {};
  }
}

// The file's bounds keep every int64 of a catalog well inside the range that a JSON number holds exactly.
function chatFields(chat: ChatSpec): JsonObject {
  return {
    maxInputTokens: Number(chat.maxInputTokens),
    maxOutputTokens: Number(chat.maxOutputTokens),
    safetyMarginTokens: Number(chat.safetyMarginTokens),
    reasoningEfforts: chat.reasoningEfforts,
    reasoningAliases: { ...chat.reasoningAliases },
    inputModalities: chat.inputModalities,
    tools: chat.tools,
    pricing: chatPricing(chat),
  };
}

/** Only a model with at least one upstream that speaks the Responses protocol serves `/responses`. */
function isResponsesCapable(model: Model, snapshot: Snapshot): boolean {
  return [model.upstream, ...model.fallbackUpstreams].some((name) => {
    const protocol = snapshot.upstreams[name]?.protocol;
    return protocol !== undefined && servesText(protocol, "responses");
  });
}

/** The optional fields of a request, beside those that each model of the kind takes, in every mode of the model. */
function optionalFields(model: Model, snapshot: Snapshot): JsonObject {
  const { spec } = model;
  const hasSeveral = spec.case === "image" && (spec.value.maxImages || maxImages) > 1;
  const hasReferences = spec.case !== "music" && mostReferences(spec.value) > 0;
  return {
    optionalParameters: [
      ...fieldsTaken(model, snapshot),
      ...(hasSeveral ? ["n"] : []),
      ...(hasReferences ? ["references"] : []),
    ],
  };
}

function mostReferences(spec: Model["spec"]["value"]): number {
  return spec && "maxReferences" in spec ? spec.maxReferences : 0;
}

function imageFields(image: ImageSpec): JsonObject {
  return {
    creditPrice: Number(image.creditPrice),
    sizes: ["auto", ...image.sizes],
    resolutions: image.resolutions,
    availableAspectRatios: [...imageRatios(image)],
    maxReferences: image.maxReferences,
    ...(image.masks && { masks: true }),
    maxImages: image.maxImages || maxImages,
    ...(image.options.length > 0 && { imageOptions: image.options.map(toImageOption) }),
    maxPromptCharacters,
  };
}

/** A row as the catalog gives it. */
function toImageOption({ quality, size, credits }: ImageOption): JsonObject {
  return { ...(quality && { quality }), ...(size && { size }), credits: Number(credits) };
}

function videoFields(video: VideoSpec): JsonObject {
  const rows = video.options.filter((row) => row.active);
  const offers = (mode: VideoMode) => rows.some((row) => row.modes.includes(mode));
  const resolutions = new Set(rows.map((row) => row.resolution));
  const options = rows.map(toOption);
  const t2v = safetyNames[video.t2vSafetyCheck];
  const i2v = safetyNames[video.i2vSafetyCheck];
  return {
    t2vEnabled: offers(VideoMode.T2V),
    i2vEnabled: offers(VideoMode.I2V),
    videoOptions: options,
    availableOptions: options,
    availableAspectRatios: video.aspectRatios,
    durations: [...new Set(rows.map((row) => row.durationSeconds))],
    resolutions: [...resolutions],
    sizes: Object.keys(videoSizes).filter((size) =>
      resolutions.has(videoSizes[size]?.resolution ?? ""),
    ),
    maxReferences: video.maxReferences,
    ...(video.approxRuntimeSeconds > 0 ? { approxRuntimeSeconds: video.approxRuntimeSeconds } : {}),
    safetyCheck: { ...(t2v ? { t2v } : {}), ...(i2v ? { i2v } : {}) },
    nativeAudio: audioNames[video.nativeAudio] ?? "none",
    firstLastFrame: video.firstLastFrame,
    maxPromptCharacters,
  };
}

function toOption(row: VideoOption): JsonValue {
  return {
    durationSeconds: row.durationSeconds,
    resolution: row.resolution,
    modes: row.modes.flatMap((mode) => modeNames[mode] ?? []),
    credits: Number(row.credits),
  };
}

function speechFields(speech: SpeechSpec): JsonObject {
  return {
    voices: speech.voices,
    languages: speech.languages,
    formats: speech.formats.length > 0 ? speech.formats : ["mp3"],
    speed: speechSpeed,
    maxInputCharacters: maxSpeechCharacters,
    pricing: { usdMicrosPerMillionCharacters: Number(speech.usdMicrosPerMillionCharacters) },
  };
}

function embeddingFields(embedding: EmbeddingSpec): JsonObject {
  return {
    maxInputTokens: Number(embedding.maxInputTokens),
    maxInputs: embedding.maxInputs,
    pricing: {
      inputUsdMicrosPerMillionTokens: Number(embedding.inputUsdMicrosPerMillionTokens),
    },
  };
}
