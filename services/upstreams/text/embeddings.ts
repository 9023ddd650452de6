// Reads an answer with embeddings, and gives its vectors the format that the caller asked for.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { UpstreamFailure } from "./failure.ts";
import type { ReportedUsage } from "./port.ts";
import type { ReadAnswer } from "./responses/json-answer.ts";

/** The form of vectors: numbers, or base64 of their 32-bit floats with the least byte first. */
export type VectorFormat = "float" | "base64";

/** The format that a request for embeddings names. */
export function vectorFormatOf(asked: JsonValue | undefined): VectorFormat {
  return asked === "base64" ? "base64" : "float";
}

/**
 * Embeddings as callers see them: one vector for each input, in the order of the inputs and in the format of the request. Nothing else
 * of the upstream's is shown. Throws `UpstreamFailure` where vectors are missing.
 */
export function readEmbeddings(
  found: JsonObject,
  { modelId, inputs, format }: { modelId: string; inputs: number; format: VectorFormat },
): ReadAnswer {
  const usage = usageOf(found.usage);
  const vectors: JsonValue[] = [];
  const room = { bytes: answerLimits.jsonBytes };
  const data = Array.isArray(found.data) ? found.data : [];
  // Some servers give every row the number 0.
  const isNumbered = data.some((item) => isJsonObject(item) && (item.index ?? 0) !== 0);
  for (const [place, item] of data.entries()) {
    const vector = isJsonObject(item) ? vectorOf(item.embedding, format, room) : undefined;
    if (!isJsonObject(item) || vector === undefined) break;
    const index = (isNumbered ? item.index : undefined) ?? place;
    if (typeof index === "number" && !(index in vectors)) vectors[index] = vector;
  }
  // A missing vector, or one too many, shows in the number of keys.
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

const floatBytes = 4;
/** The most characters of a 32-bit float as JSON, with the comma behind it. */
const numberCharacters = 25;

/**
 * A vector in the format. Undefined where the value is no vector. `room`: the bytes that numbers made of base64 may take in the answer.
 */
function vectorOf(
  value: JsonValue | undefined,
  format: VectorFormat,
  room: { bytes: number },
): JsonValue | undefined {
  if (typeof value === "string") {
    // One look for a wrong character. A pattern for all of a long text needs memory for each of its characters, and may fail.
    if (/[^A-Za-z0-9+/]/.test(value.replace(/={1,2}$/, ""))) return undefined;
    const bytes = Buffer.from(value, "base64");
    if (bytes.length === 0 || bytes.length % floatBytes !== 0) return undefined;
    if (format === "float") return numbersOf(bytes, room);
    // Many decoders need the padding that some servers leave out.
    return value.length % 4 === 0 ? value : bytes.toString("base64");
  }
  const isVector = Array.isArray(value) && value.length > 0 && value.every(isNumber);
  if (!isVector) return undefined;
  return format === "base64" ? base64Of(value) : value;
}

/** Is it a number that 32 bits can hold? Any other would be infinite as base64, and JSON has no infinite numbers. */
function isNumber(value: JsonValue): value is number {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}

function base64Of(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * floatBytes);
  for (const [place, number] of numbers.entries()) bytes.writeFloatLE(number, place * floatBytes);
  return bytes.toString("base64");
}

/** The numbers of a vector. Undefined where JSON does not have one of them. */
function numbersOf(bytes: Buffer, room: { bytes: number }): number[] | undefined {
  // As numbers the vector is five times as long. If that is longer than an answer may be, an answer with numbers would have been
  // refused too.
  room.bytes -= (bytes.length / floatBytes) * numberCharacters;
  if (room.bytes < 0) return undefined;
  const numbers: number[] = [];
  for (let at = 0; at < bytes.length; at += floatBytes) {
    const number = bytes.readFloatLE(at);
    if (!Number.isFinite(number)) return undefined;
    numbers.push(number);
  }
  return numbers;
}

/** The number of inputs of a request. A text or a list of tokens is one. */
export function inputCount(input: JsonValue | undefined): number {
  return Array.isArray(input) && typeof input[0] !== "number" ? input.length : 1;
}

/** The usage of the input. There is no output. */
function usageOf(usage: JsonValue | undefined): ReportedUsage | undefined {
  if (!isJsonObject(usage)) return undefined;
  const { prompt_tokens: prompt, total_tokens: total } = usage;
  // Some servers report only one of the two, and leave the other at zero.
  const tokens = (prompt === 0 ? total : prompt) ?? total ?? prompt ?? null;
  if (tokens === null) return undefined;
  const inputTokens = typeof tokens === "number" ? tokens : Number.NaN;
  return { inputTokens, cachedInputTokens: 0, outputTokens: 0 };
}
