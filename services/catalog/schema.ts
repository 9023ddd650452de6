import { z } from "zod";
import {
  defaultConnectTimeoutMs,
  defaultIdleTimeoutMs,
  defaultTimeoutMs,
  defaultTokenDelayMs,
  maxDeveloperPromptCharacters,
  maxInFlight,
  maxModels,
  maxNameCharacters,
  maxTextCharacters,
  maxTimeoutMs,
  maxTokenDelayMs,
  maxUpstreams,
} from "./limits.ts";
import { modelSchema, upstreamName } from "./schema-model.ts";

// Compiling the schema costs more than it saves where a file is read once in a while; of a start it was a hundredth.
z.config({ jitless: true });

const timeoutMs = z.int().min(1).max(maxTimeoutMs);
const maxConcurrent = z.int().min(1).max(maxInFlight).optional();

const remote = {
  baseUrl: z.string().max(maxTextCharacters).transform(trimmedUrl),
  apiKeyEnv: z
    .string()
    .max(maxNameCharacters)
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be the name of a variable, not a key")
    .optional(),
  timeoutMs: timeoutMs.default(defaultTimeoutMs),
  idleTimeoutMs: timeoutMs.default(defaultIdleTimeoutMs),
  connectTimeoutMs: timeoutMs.default(defaultConnectTimeoutMs),
  maxConcurrent,
};
const inlineImages = z.boolean().default(false);
/** What the server calls the bound of a text answer's output. */
const outputLimit = z
  .enum(["max_tokens", "max_completion_tokens", "max_output_tokens", "none"])
  .optional();

const upstreamSchema = z.discriminatedUnion("protocol", [
  z.strictObject({ protocol: z.literal("openai"), ...remote, inlineImages, outputLimit }),
  z.strictObject({ protocol: z.literal("genmesh"), ...remote, inlineImages }),
  z.strictObject({ protocol: z.literal("chat-completions"), ...remote, outputLimit }),
  z.strictObject({
    protocol: z.literal("builtin"),
    tokenDelayMs: z.int().min(0).max(maxTokenDelayMs).default(defaultTokenDelayMs),
    maxConcurrent,
  }),
]);

/** A catalog file: the names, types and bounds of its keys. What its parts say of each other: rules.ts. */
export const catalogSchema = z.strictObject({
  developerPrompt: z.string().max(maxDeveloperPromptCharacters).default(""),
  upstreams: z
    .record(upstreamName, upstreamSchema)
    .refine(
      (map) => Object.keys(map).length <= maxUpstreams,
      `has at most ${maxUpstreams} entries`,
    ),
  models: z.array(modelSchema).min(1).max(maxModels),
});

/** A catalog file whose keys are right, with its defaults filled in. */
export type CatalogFile = z.output<typeof catalogSchema>;
/** An upstream of a catalog file. */
export type CatalogUpstream = z.output<typeof upstreamSchema>;

/** http or https, no credentials, query or fragment; without the slash at its end, so that paths can be appended. */
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
