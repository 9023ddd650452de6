import { createHash } from "node:crypto";
import { create, type MessageInitShape, toBinary, toJson } from "@bufbuild/protobuf";
import canonicalize from "canonicalize";
import {
  type ModelSchema,
  type Snapshot,
  SnapshotSchema,
  type UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { CatalogFile, CatalogUpstream } from "./schema.ts";
import type { CatalogModel } from "./schema-model.ts";
import { kinds, modes, nativeAudios, outputLimits, protocols, safetyChecks } from "./words.ts";

type UpstreamInit = MessageInitShape<typeof UpstreamSchema>;
type ModelInit = MessageInitShape<typeof ModelSchema>;

/** The snapshot of a file without faults. Equal content gives an equal version, whatever the order of its keys. */
export function snapshotOf(file: CatalogFile): Snapshot {
  const content = create(SnapshotSchema, {
    developerPrompt: file.developerPrompt,
    upstreams: Object.fromEntries(
      Object.entries(file.upstreams).map(([name, upstream]) => [name, upstreamOf(name, upstream)]),
    ),
    models: file.models.map(modelOf),
  });
  const hash = createHash("sha256").update(canonicalize(toJson(SnapshotSchema, content)) ?? "");
  return create(SnapshotSchema, { ...content, version: hash.digest("hex").slice(0, 16) });
}

/** Its size on the wire, bytes. */
export function snapshotBytes(snapshot: Snapshot): number {
  return toBinary(SnapshotSchema, snapshot).byteLength;
}

function upstreamOf(name: string, upstream: CatalogUpstream): UpstreamInit {
  const common = {
    name,
    protocol: protocols[upstream.protocol],
    maxConcurrent: upstream.maxConcurrent ?? 0,
  };
  if (upstream.protocol === "builtin") return { ...common, tokenDelayMs: upstream.tokenDelayMs };
  return {
    ...common,
    baseUrl: upstream.baseUrl,
    apiKeyEnv: upstream.apiKeyEnv ?? "",
    timeoutMs: BigInt(upstream.timeoutMs),
    idleTimeoutMs: BigInt(upstream.idleTimeoutMs),
    connectTimeoutMs: BigInt(upstream.connectTimeoutMs),
    inlineImages: "inlineImages" in upstream && upstream.inlineImages,
    ...("outputLimit" in upstream && upstream.outputLimit
      ? { outputLimit: outputLimits[upstream.outputLimit] }
      : {}),
  };
}

function modelOf(model: CatalogModel): ModelInit {
  return {
    id: model.id,
    kind: kinds[model.kind],
    name: model.name ?? model.id,
    description: model.description,
    active: model.active,
    isDefault: model.default,
    upstream: model.upstream,
    upstreamModel: model.upstreamModel ?? model.id,
    fallbackUpstreams: model.fallbackUpstreams,
    maxConcurrent: "maxConcurrent" in model ? (model.maxConcurrent ?? 0) : 0,
    spec: specOf(model),
  };
}

function specOf(model: CatalogModel): NonNullable<ModelInit["spec"]> {
  switch (model.kind) {
    case "chat": {
      const { pricing } = model;
      const cached =
        pricing.cachedInputUsdMicrosPerMillionTokens ?? pricing.inputUsdMicrosPerMillionTokens;
      const value = {
        maxInputTokens: BigInt(model.maxInputTokens),
        maxOutputTokens: BigInt(model.maxOutputTokens),
        safetyMarginTokens: BigInt(model.safetyMarginTokens),
        imageTokensAtLeast: BigInt(model.imageTokensAtLeast ?? 0),
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
      };
      return { case: "chat", value };
    }
    case "image": {
      const value = {
        creditPrice: BigInt(model.creditPrice),
        sizes: model.sizes,
        resolutions: model.resolutions,
        aspectRatios: model.availableAspectRatios,
        maxReferences: model.maxReferences,
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
      const { voices, languages } = model;
      return {
        case: "speech",
        value: { voices, languages, usdMicrosPerMillionCharacters: perMillion },
      };
    }
    case "music":
      return { case: "music", value: { creditPrice: BigInt(model.creditPrice) } };
  }
}
