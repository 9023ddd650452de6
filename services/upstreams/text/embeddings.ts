import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import { UpstreamFailure } from "./failure.ts";
import type { ReportedUsage } from "./port.ts";
import type { ReadAnswer } from "./responses/json-answer.ts";

/**
 * Embeddings as we show them: one vector for each input, in the order of the inputs, and nothing else of upstream's. Throws
 * `UpstreamFailure` where they are not all there.
 */
export function readEmbeddings(
  found: JsonObject,
  { modelId, inputs }: { modelId: string; inputs: number },
): ReadAnswer {
  const usage = usageOf(found.usage);
  const vectors: JsonValue[] = [];
  const data = Array.isArray(found.data) ? found.data : [];
  for (const [place, item] of data.entries()) {
    if (!isJsonObject(item) || !isVector(item.embedding)) break;
    const { index = place, embedding } = item;
    if (typeof index === "number" && !(index in vectors)) vectors[index] = embedding as JsonValue;
  }
  // A hole, or one too many, is a key that is not there.
  if (vectors.length !== inputs || Object.keys(vectors).length !== inputs) {
    const failure = new UpstreamFailure("garbage");
    failure.usage = usage;
    throw failure;
  }
  const shown = usage && { prompt_tokens: usage.inputTokens, total_tokens: usage.inputTokens };
  return {
    object: {
      object: "list",
      data: vectors.map((embedding, index) => ({ object: "embedding", index, embedding })),
      model: modelId,
      usage: shown ?? { prompt_tokens: 0, total_tokens: 0 },
    },
    ending: "completed",
    usage,
    outputText: "",
    opaque: [],
  };
}

/** Base64 of numbers, or the numbers. */
function isVector(value: JsonValue | undefined): boolean {
  if (typeof value === "string") return /^[A-Za-z0-9+/]+={0,2}$/.test(value);
  return Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === "number");
}

/** How many inputs a request has: a text or a list of tokens is one. */
export function inputCount(input: JsonValue | undefined): number {
  return Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
}

/** There is no output: what is used is the input. */
function usageOf(usage: JsonValue | undefined): ReportedUsage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const { prompt_tokens: prompt, total_tokens: total } = usage;
  // Servers that name one of them alone may leave the other at zero.
  const tokens = (prompt === 0 ? total : prompt) ?? total ?? prompt ?? null;
  if (tokens === null) return undefined;
  const inputTokens = typeof tokens === "number" ? tokens : Number.NaN;
  return { inputTokens, cachedInputTokens: 0, outputTokens: 0 };
}
