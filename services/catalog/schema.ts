// Says which keys a catalog file may have, and the type, bounds and default of each. `rules.ts` judges how keys fit together, and
// `key-words.ts` says what each means.

import { z } from "zod";
import { maxImages } from "#common/words/request-bounds.ts";
import { storedKeyName } from "#common/words/stored-key-name.ts";
import { soundFormats } from "#kit/sound/formats.ts";
import { usualBetas } from "../upstreams/anthropic/capabilities.ts";
import type { UpstreamKey } from "../upstreams/capabilities.ts";
import { declarationSchema } from "../upstreams/jobs/declaration.ts";
import { type ProtocolName, protocolNames, protocols } from "../upstreams/protocols.ts";
import { callSchema, videoCallSchema } from "./calls.ts";
import {
  defaultConnectTimeoutMs,
  defaultEmbeddingInputs,
  defaultIdleTimeoutMs,
  defaultTimeoutMs,
  defaultTokenDelayMs,
  maxCertificateCharacters,
  maxDeveloperPromptCharacters,
  maxDurationSeconds,
  maxEmbeddingInputs,
  maxFallbacks,
  maxHiddenTokensPerSecond,
  maxIdCharacters,
  maxInFlight,
  maxKeys,
  maxListItems,
  maxModels,
  maxNameCharacters,
  maxPoolMembers,
  maxReferences,
  maxSoundSeconds,
  maxTextCharacters,
  maxTimeoutMs,
  maxTokenDelayMs,
  maxTokens,
  maxUpstreams,
  maxWeight,
} from "./limits.ts";
import { chatPricing, label, price, tokens } from "./prices.ts";

/** Name of an upstream. */
const upstreamName = z
  .string()
  .max(maxNameCharacters)
  .regex(/^[A-Za-z0-9][\w.-]*$/, "must be a name of letters, digits, '.', '_' and '-'");

const inFlight = z.int().min(1).max(maxInFlight).optional();
const references = z.int().min(0).max(maxReferences).default(0);

/** Each item once, compared in the form in which it is matched. */
function listOf<T extends z.ZodType<string>>(item: T, max = maxListItems) {
  return z
    .array(item)
    .max(max)
    .superRefine((list, context) => {
      for (const [index, value] of list.entries()) {
        if (list.indexOf(value) < index) {
          context.addIssue({ code: "custom", path: [index], message: "is in the list already" });
        }
      }
    });
}

const ratio = z
  .string()
  .regex(/^(auto|[1-9]\d?:[1-9]\d?)$/, 'must be auto or a ratio in quotes, like "16:9"');
const size = z.string().regex(/^[1-9]\d{1,4}x[1-9]\d{1,4}$/, "must be a size like 1024x1024");
const ratios = listOf(ratio);

/** A day (its beginning in UTC) or a time. It is announced to callers, and changes nothing by itself. */
const announced = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })], {
    error: "must be a day like 2027-06-30, or a time like 2027-06-30T12:00:00Z",
  })
  .optional();

const common = {
  id: z
    .string()
    .max(maxIdCharacters)
    .regex(
      /^[A-Za-z0-9][\w.:/-]*$/,
      "must be an id of letters, digits, '.', '_', ':', '/' and '-'",
    ),
  name: label.optional(),
  description: z.string().max(maxTextCharacters).default(""),
  active: z.boolean().default(true),
  default: z.boolean().default(false),
  upstream: upstreamName,
  upstreamModel: label.optional(),
  fallbackUpstreams: listOf(upstreamName, maxFallbacks).default([]),
  deprecatedAt: announced,
  shutdownDate: announced,
};

const chat = z.strictObject({
  ...common,
  kind: z.literal("chat"),
  maxInputTokens: tokens,
  maxOutputTokens: tokens,
  safetyMarginTokens: z.int().min(0).max(maxTokens).default(0),
  reasoningEfforts: listOf(label).default([]),
  reasoningAliases: z
    .record(label, label)
    .refine((map) => Object.keys(map).length <= maxListItems, `has at most ${maxListItems} entries`)
    .default({}),
  imageTokensAtLeast: tokens.optional(),
  imageTiles: z.strictObject({ base: z.int().min(0).max(maxTokens), each: tokens }).optional(),
  audioTokensPerSecond: tokens.optional(),
  hiddenTokensPerSecond: z.int().min(1).max(maxHiddenTokensPerSecond).optional(),
  inputModalities: listOf(z.enum(["text", "image", "pdf", "audio"])).default(["text"]),
  tools: listOf(label).default([]),
  developerPrompt: z.string().max(maxDeveloperPromptCharacters).optional(),
  serviceTier: label.optional(),
  passParameters: listOf(label).default([]),
  forcedTools: z.boolean().default(true),
  blockBinding: z.enum(["drop_block", "off"]).optional(),
  pricing: chatPricing,
});

/** The fate of a job whose answer was lost. */
const lostAnswer = z.enum(["again", "fail"]).optional();
/** Keys of every model that makes jobs. */
const ofJobs = { maxConcurrent: inFlight, lostAnswer };

const image = z.strictObject({
  ...common,
  ...ofJobs,
  kind: z.literal("image"),
  creditPrice: price,
  sizes: listOf(size).default([]),
  resolutions: listOf(label).default([]),
  availableAspectRatios: ratios.default([]),
  maxReferences: references,
  masks: z.boolean().default(false),
  maxImages: z.int().min(1).max(maxImages).default(maxImages),
  imageOptions: z
    .array(z.strictObject({ quality: label.optional(), size: size.optional(), credits: price }))
    .max(maxListItems)
    .default([]),
  call: callSchema.optional(),
});

const videoMode = z.enum(["t2v", "i2v"]);
const safetyCheck = z.enum(["applied", "none", "standard"]).optional();

const video = z.strictObject({
  ...common,
  ...ofJobs,
  kind: z.literal("video"),
  maxReferences: references,
  availableAspectRatios: ratios.min(1),
  approxRuntimeSeconds: z.int().min(1).max(maxDurationSeconds).optional(),
  safetyCheck: z.strictObject({ t2v: safetyCheck, i2v: safetyCheck }).default({}),
  nativeAudio: z.enum(["none", "mono", "stereo"]).default("none"),
  firstLastFrame: z.boolean().default(false),
  videoOptions: z
    .array(
      z.strictObject({
        durationSeconds: z.int().min(1).max(maxDurationSeconds),
        resolution: z.string().regex(/^[1-9]\d{2,3}p$/, "must be a resolution like 720p"),
        modes: listOf(videoMode).min(1),
        credits: price,
        active: z.boolean().default(true),
      }),
    )
    .min(1)
    .max(maxListItems),
  call: videoCallSchema.optional(),
});

const speech = z.strictObject({
  ...common,
  kind: z.literal("speech"),
  voices: listOf(label).min(1),
  /** The upstreams' names for voices, where they differ. */
  upstreamVoices: z.record(label, label).default({}),
  languages: listOf(label).default([]),
  formats: listOf(z.enum(soundFormats)).default(["mp3"]),
  pricing: z.strictObject({ usdMicrosPerMillionCharacters: price }),
});

const music = z.strictObject({
  ...common,
  ...ofJobs,
  kind: z.literal("music"),
  creditPrice: price,
  call: callSchema.optional(),
});

const embedding = z.strictObject({
  ...common,
  kind: z.literal("embedding"),
  maxInputTokens: tokens,
  maxInputs: z.int().min(1).max(maxEmbeddingInputs).default(defaultEmbeddingInputs),
  pricing: z.strictObject({ inputUsdMicrosPerMillionTokens: price }),
});

const transcription = z.strictObject({
  ...common,
  kind: z.literal("transcription"),
  maxSeconds: z.int().min(1).max(maxSoundSeconds).default(maxSoundSeconds),
  pricing: z.strictObject({ usdMicrosPerMinute: price }),
});

/** A model: the keys of every kind, and those of its own kind. */
const modelSchema = z.discriminatedUnion("kind", [
  chat,
  image,
  video,
  speech,
  music,
  embedding,
  transcription,
]);

/** A model of a catalog file, with its defaults filled in. */
export type CatalogModel = z.output<typeof modelSchema>;
/** A model of one kind. */
export type CatalogModelOf<K extends CatalogModel["kind"]> = Extract<CatalogModel, { kind: K }>;

// Compiling the schema costs more than it saves where a file is read rarely. It was a hundredth of a start.
z.config({ jitless: true });

const variable = z
  .string()
  .max(maxNameCharacters)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable, not a key");
const absolutePath = z
  .string()
  .max(maxTextCharacters)
  .regex(/^\/[^\0]+$/, "must be the absolute path of a file");
const storedKey = z.string().regex(storedKeyName, "must be the name of a stored key, not a key");
const timeoutMs = z.int().min(1).max(maxTimeoutMs);
/** Keys of upstreams. Each is allowed where its protocol's row has it. */
const upstreamKeys = {
  baseUrl: z.string().max(maxTextCharacters).transform(trimmedUrl),
  apiKeyEnv: variable.optional(),
  /** Several keys, which share the upstream's requests. */
  apiKeyEnvs: listOf(variable, maxKeys).min(1).optional(),
  apiKeyFile: absolutePath.optional(),
  apiKeyStored: storedKey.optional(),
  timeoutMs: timeoutMs.default(defaultTimeoutMs),
  idleTimeoutMs: timeoutMs.default(defaultIdleTimeoutMs),
  connectTimeoutMs: timeoutMs.default(defaultConnectTimeoutMs),
  maxConcurrent: z.int().min(1).max(maxInFlight).optional(),
  inlineImages: z.boolean().default(false),
  /** Does it charge for a job that is cancelled after it was sent there? */
  chargesWhenCancelled: z.boolean().default(false),
  lostAnswer,
  /** The server's name for the bound of a text answer's output. */
  outputLimit: z
    .enum(["max_tokens", "max_completion_tokens", "max_output_tokens", "none"])
    .optional(),
  /** How it gets reference images. */
  references: z.enum(["inline", "upload"]).optional(),
  /** The HTTP of an upstream. */
  jobs: declarationSchema,
  /** Beta features of Messages that it may be asked for. Some cost more than the catalog can price, so there is no `"*"`. */
  betas: listOf(
    label.regex(/^[\w.-]+$/, "must be the name of one beta: letters, digits, '.', '_' and '-'"),
  ).default([...usualBetas]),
  /** Types of blocks that it knows beside those of the code. Those of the operator's state and money are refused. */
  blockTypes: listOf(
    label
      .regex(/^[a-z0-9_]+$/, "must be the type of one block: small letters, digits and '_'")
      .refine((type) => !costs.test(type), "is of what the operator pays for, and cannot be added"),
  ).default([]),
  /** The cache that is asked for where a caller's protocol cannot ask. */
  autoCache: z.enum(["5m", "1h", "off"]).default("off"),
  tokenDelayMs: z.int().min(0).max(maxTokenDelayMs).default(defaultTokenDelayMs),
} as const satisfies Record<UpstreamKey, z.ZodType>;

/** Types of blocks with which Anthropic does more than generate: for files, servers, other models, and tools that it runs itself. */
const costs = /^(container_upload|compaction|fallback|server_tool_use)$|^mcp_|_tool_result$/;

/** An upstream of a catalog file. A key that its protocol does not have is absent. */
export type CatalogUpstream = { protocol: ProtocolName } & Partial<
  z.output<z.ZodObject<typeof upstreamKeys>>
>;

function upstreamOf(name: ProtocolName) {
  const keys = protocols[name].keys.map((key) => [key, upstreamKeys[key]]);
  return z.strictObject({ protocol: z.literal(name), ...Object.fromEntries(keys) });
}

const [firstProtocol, ...otherProtocols] = protocolNames.map(upstreamOf);
if (!firstProtocol) throw new TypeError("there is no protocol");
const upstreamSchema = z.discriminatedUnion("protocol", [
  firstProtocol,
  ...otherProtocols,
]) as unknown as z.ZodType<CatalogUpstream>;

/** Upstreams of one protocol that share requests by weight. */
const poolSchema = z.strictObject({
  members: z
    .array(
      z.strictObject({ upstream: upstreamName, weight: z.int().min(1).max(maxWeight).default(1) }),
    )
    .min(1)
    .max(maxPoolMembers),
  /** The members' names of the model, where they differ. */
  upstreamModels: z.record(upstreamName, label).default({}),
});

/** The certificate and the key of the manifests that made files get. */
const contentCredentials = z.strictObject({
  certificate: z.string().max(maxCertificateCharacters),
  keyEnv: variable.optional(),
  keyFile: absolutePath.optional(),
});

/** A catalog file: the names, types and bounds of its keys. Rules between its parts are in rules.ts. */
export const catalogSchema = z.strictObject({
  developerPrompt: z.string().max(maxDeveloperPromptCharacters).default(""),
  upstreams: z
    .record(upstreamName, upstreamSchema)
    .refine(
      (map) => Object.keys(map).length <= maxUpstreams,
      `has at most ${maxUpstreams} entries`,
    ),
  pools: z
    .record(upstreamName, poolSchema)
    .refine((map) => Object.keys(map).length <= maxUpstreams, `has at most ${maxUpstreams} entries`)
    .default({}),
  models: z.array(modelSchema).min(1).max(maxModels),
  contentCredentials: contentCredentials.optional(),
});

/** A catalog file with valid keys, with its defaults filled in. */
export type CatalogFile = z.output<typeof catalogSchema>;

/** http or https, without credentials, query or fragment. The slash at its end is removed, so that paths can be appended. */
function trimmedUrl(value: string, context: z.RefinementCtx): string {
  const url = URL.parse(value);
  if (!url || !/^https?:$/.test(url.protocol)) {
    context.addIssue({ code: "custom", message: "must be an http:// or https:// URL" });
    return z.NEVER;
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    context.addIssue({
      code: "custom",
      message: "must have no user, password, query or fragment; a key belongs into apiKeyEnv",
    });
    return z.NEVER;
  }
  return url.href.replace(/\/+$/, "");
}
