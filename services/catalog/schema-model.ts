import { z } from "zod";
import {
  maxDeveloperPromptCharacters,
  maxDurationSeconds,
  maxFallbacks,
  maxIdCharacters,
  maxInFlight,
  maxListItems,
  maxNameCharacters,
  maxPrice,
  maxReferences,
  maxTextCharacters,
  maxTokens,
} from "./limits.ts";

/** Name of an upstream. */
export const upstreamName = z
  .string()
  .max(maxNameCharacters)
  .regex(/^[A-Za-z0-9][\w.-]*$/, "must be a name of letters, digits, '.', '_' and '-'");

const label = z.string().min(1).max(maxNameCharacters);
const price = z.int().min(0).max(maxPrice);
const tokens = z.int().min(1).max(maxTokens);
const inFlight = z.int().min(1).max(maxInFlight).optional();
const references = z.int().min(0).max(maxReferences).default(0);

/** Each item once, compared as it will be matched. */
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
  inputModalities: listOf(z.enum(["text", "image"])).default(["text"]),
  tools: listOf(label).default([]),
  developerPrompt: z.string().max(maxDeveloperPromptCharacters).optional(),
  serviceTier: label.optional(),
  passParameters: listOf(label).default([]),
  pricing: z.strictObject({
    inputUsdMicrosPerMillionTokens: price,
    cachedInputUsdMicrosPerMillionTokens: price.optional(),
    outputUsdMicrosPerMillionTokens: price,
  }),
});

const image = z.strictObject({
  ...common,
  kind: z.literal("image"),
  maxConcurrent: inFlight,
  creditPrice: price,
  sizes: listOf(size).default([]),
  resolutions: listOf(label).default([]),
  availableAspectRatios: ratios.default([]),
  maxReferences: references,
});

const videoMode = z.enum(["t2v", "i2v"]);
const safetyCheck = z.enum(["applied", "none", "standard"]).optional();

const video = z.strictObject({
  ...common,
  kind: z.literal("video"),
  maxConcurrent: inFlight,
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
});

const speech = z.strictObject({
  ...common,
  kind: z.literal("speech"),
  voices: listOf(label).min(1),
  languages: listOf(label).default([]),
  pricing: z.strictObject({ usdMicrosPerMillionCharacters: price }),
});

const music = z.strictObject({
  ...common,
  kind: z.literal("music"),
  maxConcurrent: inFlight,
  creditPrice: price,
});

/** A model: what every kind has, and what its own kind adds. */
export const modelSchema = z.discriminatedUnion("kind", [chat, image, video, speech, music]);

/** A model of a catalog file, with its defaults filled in. */
export type CatalogModel = z.output<typeof modelSchema>;
/** A model of one kind. */
export type CatalogModelOf<K extends CatalogModel["kind"]> = Extract<CatalogModel, { kind: K }>;
