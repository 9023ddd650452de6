// Turns a catalog file without faults into the snapshot that other services get over the wire.

import { createHash } from "node:crypto";
import { create, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import canonicalize from "canonicalize";
import {
  AutoCache,
  BlockBinding,
  LostAnswer,
  type ModelCallSchema,
  ModelKind,
  type ModelSchema,
  NativeAudio,
  OutputLimit,
  ReferenceTransport,
  SafetyCheck,
  type Snapshot,
  SnapshotSchema,
  type UpstreamSchema,
  VideoMode,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { protocols } from "../upstreams/protocols.ts";
import { type CatalogCall, callsOf } from "./calls.ts";
import type { WorkflowFiles } from "./file.ts";
import { keyedOf, lanesOf } from "./lanes.ts";
import { listOf, pricesOf } from "./prices.ts";
import type { CatalogFile, CatalogModel, CatalogUpstream } from "./schema.ts";

type UpstreamInit = MessageInitShape<typeof UpstreamSchema>;
type ModelInit = MessageInitShape<typeof ModelSchema>;
type CallInit = MessageInitShape<typeof ModelCallSchema>;

/** The snapshot of a file without faults. Equal content gives an equal version, with its keys in any order. */
export function snapshotOf(file: CatalogFile, workflows: WorkflowFiles): Snapshot {
  const content = create(SnapshotSchema, {
    developerPrompt: file.developerPrompt,
    upstreams: Object.fromEntries(
      Object.entries(file.upstreams).flatMap(([name, upstream]) =>
        keyedOf(name, upstream).map((keyed) => [keyed.name, { ...upstreamOf(upstream), ...keyed }]),
      ),
    ),
    models: file.models.map((model) => modelOf(file, model, workflows)),
    ...credentialsOf(file),
  });
  const hash = createHash("sha256").update(canonicalize(toJson(SnapshotSchema, content)) ?? "");
  return create(SnapshotSchema, { ...content, version: hash.digest("hex").slice(0, 16) });
}

function credentialsOf({ contentCredentials: one }: CatalogFile) {
  if (!one) return {};
  const { certificate, keyEnv, keyFile = "" } = one;
  return { contentCredentials: { certificate, keyName: keyEnv ?? keyFile } };
}

/** Its size on the wire, bytes. */
export function snapshotBytes(snapshot: Snapshot): number {
  return toBinary(SnapshotSchema, snapshot).byteLength;
}

function upstreamOf(upstream: CatalogUpstream): UpstreamInit {
  const { protocol, outputLimit, references, lostAnswer } = upstream;
  return {
    protocol: protocols[protocol].wire,
    baseUrl: upstream.baseUrl ?? "",
    timeoutMs: BigInt(upstream.timeoutMs ?? 0),
    idleTimeoutMs: BigInt(upstream.idleTimeoutMs ?? 0),
    connectTimeoutMs: BigInt(upstream.connectTimeoutMs ?? 0),
    inlineImages: upstream.inlineImages ?? false,
    chargesWhenCancelled: upstream.chargesWhenCancelled ?? false,
    maxConcurrent: upstream.maxConcurrent ?? 0,
    tokenDelayMs: upstream.tokenDelayMs ?? 0,
    jobs: upstream.jobs === undefined ? "" : JSON.stringify(upstream.jobs),
    ...(outputLimit && { outputLimit: outputLimits[outputLimit] }),
    ...(references && { references: transports[references] }),
    ...(lostAnswer && { lostAnswer: lostAnswers[lostAnswer] }),
    betas: upstream.betas ?? [],
    blockTypes: upstream.blockTypes ?? [],
    ...(upstream.autoCache && { autoCache: autoCaches[upstream.autoCache] }),
  };
}

function modelOf(file: CatalogFile, model: CatalogModel, workflows: WorkflowFiles): ModelInit {
  const lanes = lanesOf(file, model);
  const [first, ...others] = lanes.map(({ upstream }) => upstream);
  const isPlain = lanes.length === 1 + model.fallbackUpstreams.length;
  const isShared = !isPlain || lanes.some(({ upstreamModel }) => upstreamModel !== "");
  const lostAnswer = "lostAnswer" in model ? model.lostAnswer : undefined;
  return {
    id: model.id,
    kind: kinds[model.kind],
    name: model.name ?? model.id,
    description: model.description,
    active: model.active,
    isDefault: model.default,
    upstream: first ?? "",
    upstreamModel: model.upstreamModel ?? model.id,
    fallbackUpstreams: others,
    shares: isShared ? lanes : [],
    maxConcurrent: "maxConcurrent" in model ? (model.maxConcurrent ?? 0) : 0,
    calls:
      "call" in model ? callsOf(model).map(({ mode, call }) => callOf(mode, call, workflows)) : [],
    ...(lostAnswer && { lostAnswer: lostAnswers[lostAnswer] }),
    deprecatedAtMs: BigInt(Date.parse(model.deprecatedAt ?? "1970-01-01")),
    shutdownAtMs: BigInt(Date.parse(model.shutdownDate ?? "1970-01-01")),
    spec: specOf(model),
  };
}

function callOf(
  mode: string,
  { model = "", workflow: file = "", input, output = "", refused = "" }: CatalogCall,
  workflows: WorkflowFiles,
): CallInit {
  const text = workflows.get(file)?.text;
  // The file's spaces are removed, because it is sent with every job.
  const workflow = text === undefined ? "" : JSON.stringify(JSON.parse(text));
  return { mode, model, input: JSON.stringify(input), output, refused, workflow };
}

function chatSpecOf(model: Extract<CatalogModel, { kind: "chat" }>) {
  const { pricing } = model;
  const cached =
    pricing.cachedInputUsdMicrosPerMillionTokens ?? pricing.inputUsdMicrosPerMillionTokens;
  const prices = pricesOf(pricing);
  const hasTools = Object.keys(pricing.toolCalls).length > 0;
  return {
    maxInputTokens: BigInt(model.maxInputTokens),
    maxOutputTokens: BigInt(model.maxOutputTokens),
    safetyMarginTokens: BigInt(model.safetyMarginTokens),
    imageTokensAtLeast: BigInt(model.imageTokensAtLeast ?? 0),
    imageTokensPerTile: BigInt(model.imageTiles?.each ?? 0),
    imageTokensBase: BigInt(model.imageTiles?.base ?? 0),
    audioTokensPerSecond: BigInt(model.audioTokensPerSecond ?? 0),
    hiddenTokensPerSecond: BigInt(model.hiddenTokensPerSecond ?? 0),
    reasoningEfforts: model.reasoningEfforts,
    reasoningAliases: Object.fromEntries(
      Object.entries(model.reasoningAliases).map(([name, to]) => [name.toLowerCase(), to]),
    ),
    inputModalities: model.inputModalities,
    tools: model.tools,
    ...(model.developerPrompt === undefined ? {} : { developerPrompt: model.developerPrompt }),
    inputUsdMicrosPerMillionTokens: BigInt(pricing.inputUsdMicrosPerMillionTokens),
    cachedInputUsdMicrosPerMillionTokens: BigInt(cached),
    outputUsdMicrosPerMillionTokens: BigInt(pricing.outputUsdMicrosPerMillionTokens),
    serviceTier: model.serviceTier ?? "",
    passParameters: model.passParameters,
    ...(prices && { prices }),
    ...(pricing.upstreamCost && { upstreamCost: listOf(pricing.upstreamCost) }),
    ...(hasTools && { toolCallLimit: pricing.toolCallLimit }),
    refusesForcedTools: !model.forcedTools,
    ...(model.blockBinding && { blockBinding: blockBindings[model.blockBinding] }),
  };
}

function specOf(model: CatalogModel): NonNullable<ModelInit["spec"]> {
  switch (model.kind) {
    case "chat":
      return { case: "chat", value: chatSpecOf(model) };
    case "image": {
      const value = {
        creditPrice: BigInt(model.creditPrice),
        sizes: model.sizes,
        resolutions: model.resolutions,
        aspectRatios: model.availableAspectRatios,
        maxReferences: model.maxReferences,
        masks: model.masks,
        maxImages: model.maxImages,
        options: model.imageOptions.map(({ quality = "", size = "", credits }) => ({
          ...{ quality, size },
          credits: BigInt(credits),
        })),
      };
      return { case: "image", value };
    }
    case "video": {
      const value = {
        options: model.videoOptions.map((row) => ({
          ...row,
          modes: row.modes.map((mode) => modes[mode]),
          credits: BigInt(row.credits),
        })),
        aspectRatios: model.availableAspectRatios,
        maxReferences: model.maxReferences,
        approxRuntimeSeconds: model.approxRuntimeSeconds ?? 0,
        t2vSafetyCheck: safetyChecks[model.safetyCheck.t2v ?? "unsaid"],
        i2vSafetyCheck: safetyChecks[model.safetyCheck.i2v ?? "unsaid"],
        nativeAudio: nativeAudios[model.nativeAudio],
        firstLastFrame: model.firstLastFrame,
      };
      return { case: "video", value };
    }
    case "speech": {
      const perMillion = BigInt(model.pricing.usdMicrosPerMillionCharacters);
      const { voices, languages, upstreamVoices, formats } = model;
      return {
        case: "speech",
        value: {
          ...{ voices, languages, upstreamVoices, formats },
          usdMicrosPerMillionCharacters: perMillion,
        },
      };
    }
    case "embedding": {
      const value = {
        maxInputTokens: BigInt(model.maxInputTokens),
        maxInputs: model.maxInputs,
        inputUsdMicrosPerMillionTokens: BigInt(model.pricing.inputUsdMicrosPerMillionTokens),
      };
      return { case: "embedding", value };
    }
    case "transcription": {
      const value = {
        maxSeconds: BigInt(model.maxSeconds),
        usdMicrosPerMinute: BigInt(model.pricing.usdMicrosPerMinute),
      };
      return { case: "transcription", value };
    }
    case "music":
      return { case: "music", value: { creditPrice: BigInt(model.creditPrice) } };
  }
}

/** The file's words for the enums of the wire. */
const kinds = {
  chat: ModelKind.CHAT,
  image: ModelKind.IMAGE,
  video: ModelKind.VIDEO,
  speech: ModelKind.SPEECH,
  music: ModelKind.MUSIC,
  embedding: ModelKind.EMBEDDING,
  transcription: ModelKind.TRANSCRIPTION,
} as const;

/** `upstreams.*.outputLimit`. */
const outputLimits = {
  max_tokens: OutputLimit.MAX_TOKENS,
  max_completion_tokens: OutputLimit.MAX_COMPLETION_TOKENS,
  max_output_tokens: OutputLimit.MAX_OUTPUT_TOKENS,
  none: OutputLimit.NONE,
} as const;

/** `upstreams.*.references`. */
const transports = {
  inline: ReferenceTransport.INLINE,
  upload: ReferenceTransport.UPLOAD,
} as const;

/** `upstreams.*.autoCache`. */
const autoCaches = {
  "5m": AutoCache.SHORT,
  "1h": AutoCache.LONG,
  off: AutoCache.UNSPECIFIED,
} as const;

/** `blockBinding` of models. */
const blockBindings = {
  drop_block: BlockBinding.DROP_BLOCK,
  off: BlockBinding.OFF,
} as const;

/** `lostAnswer` of upstreams and models. */
const lostAnswers = { again: LostAnswer.AGAIN, fail: LostAnswer.FAIL } as const;

/** `videoOptions[].modes[]`. */
const modes = { t2v: VideoMode.T2V, i2v: VideoMode.I2V } as const;

/** `safetyCheck.*`, and its absence. */
const safetyChecks = {
  unsaid: SafetyCheck.UNSPECIFIED,
  applied: SafetyCheck.APPLIED,
  none: SafetyCheck.NONE,
  standard: SafetyCheck.STANDARD,
} as const;

/** `nativeAudio`. */
const nativeAudios = {
  none: NativeAudio.NONE,
  mono: NativeAudio.MONO,
  stereo: NativeAudio.STEREO,
} as const;
