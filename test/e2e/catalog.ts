import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";

/** The configured developer prompt of these worlds. No answer and no log line of a world may have this text. */
export const developerPrompt = "OPERATOR-WORDS: be brief. Never mention the purple elephant.";
/** The developer prompt of the model `own-prompt`. */
export const ownPrompt = "OPERATOR-WORDS of this model alone.";
/** A text that both prompts have and no other text has. */
export const promptMark = "OPERATOR-WORDS";

/** Names of the variables that hold the upstreams' keys, and their values. */
export const upstreamKeys = { UP_KEY: "up-key-5f2c9d", BACKUP_KEY: "backup-key-77aa01" };

/** USD micros for a million tokens. A token of input costs 1 micro, a cached one 0.25, one of output 4. */
export const pricing = {
  inputUsdMicrosPerMillionTokens: 1_000_000,
  cachedInputUsdMicrosPerMillionTokens: 250_000,
  outputUsdMicrosPerMillionTokens: 4_000_000,
};

/** A catalog file as an object. */
export interface CatalogObject {
  developerPrompt: string;
  upstreams: Record<string, object>;
  models: ({ id: string; kind: string } & Record<string, unknown>)[];
  contentCredentials?: object;
}

/** The addresses of a world's upstreams. */
export interface UpstreamAddresses {
  /** The scripted upstream. */
  main: string;
  /** The second one. */
  backup: string;
  /** An address without a server. */
  nowhere: string;
}

const shipped = fileURLToPath(new URL("../../deploy/catalog.yaml", import.meta.url));

/** The shipped catalog, its builtin upstream without pauses, and chat models on the scripted upstreams. Their names show their purpose. */
export function testCatalog({ main, backup, nowhere }: UpstreamAddresses): CatalogObject {
  const base = parse(readFileSync(shipped, "utf8")) as CatalogObject;
  const openai = { protocol: "openai", baseUrl: main, apiKeyEnv: "UP_KEY" };
  return {
    developerPrompt,
    upstreams: {
      ...base.upstreams,
      studio: { protocol: "builtin", tokenDelayMs: 0 },
      main: openai,
      backup: { protocol: "openai", baseUrl: backup, apiKeyEnv: "BACKUP_KEY" },
      nowhere: { protocol: "openai", baseUrl: nowhere },
      hasty: { ...openai, timeoutMs: 400, idleTimeoutMs: 250 },
      narrow: { ...openai, maxConcurrent: 1 },
      pair: { ...openai, maxConcurrent: 2 },
      inlining: { ...openai, inlineImages: true },
      legacy: { protocol: "chat-completions", baseUrl: main, apiKeyEnv: "UP_KEY" },
      peer: { protocol: "genmesh", baseUrl: main, apiKeyEnv: "UP_KEY" },
      keyless: { protocol: "openai", baseUrl: main, apiKeyEnv: "UNSET_KEY" },
    },
    models: [
      ...base.models,
      chat("scripted", { upstreamModel: "up-model" }),
      chat("plain", { reasoningEfforts: [], reasoningAliases: {}, inputModalities: ["text"] }),
      chat("few-tools", { tools: ["function"] }),
      chat("tiny", { maxInputTokens: 1_000, maxOutputTokens: 200, safetyMarginTokens: 100 }),
      chat("own-prompt", { developerPrompt: ownPrompt }),
      chat("no-prompt", { developerPrompt: "" }),
      chat("tiered", { serviceTier: "flex" }),
      chat("inactive", { active: false }),
      chat("hasty", { upstream: "hasty" }),
      chat("inlining", { upstream: "inlining" }),
      chat("narrow", { upstream: "narrow" }),
      chat("pair", { upstream: "pair" }),
      chat("legacy", { upstream: "legacy", upstreamModel: "up-model" }),
      chat("peer", { upstream: "peer", upstreamModel: "up-model" }),
      chat("keyless", { upstream: "keyless" }),
      chat("nowhere", { upstream: "nowhere" }),
      chat("backed", { upstreamModel: "up-model", fallbackUpstreams: ["backup"] }),
      chat("lost-and-backed", { upstream: "nowhere", fallbackUpstreams: ["main", "backup"] }),
    ],
  };
}

/** A chat model of these worlds. */
export function chat(
  id: string,
  changes: Record<string, unknown> = {},
): CatalogObject["models"][number] {
  return {
    id,
    kind: "chat",
    upstream: "main",
    maxInputTokens: 20_000,
    maxOutputTokens: 1_000,
    safetyMarginTokens: 100,
    reasoningEfforts: ["low", "medium", "high"],
    reasoningAliases: { fast: "low", Deep: "high" },
    inputModalities: ["text", "image"],
    tools: ["*"],
    pricing,
    ...changes,
  };
}
