import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { answerLimits } from "#kit/upstream/limits.ts";
import { UpstreamFailure } from "./failure.ts";
import type { ReportedUsage } from "./port.ts";
import type { ReadAnswer } from "./responses/json-answer.ts";

/** How vectors are written: as numbers, or as base64 of their 32-bit floats, the least byte first. */
export type VectorFormat = "float" | "base64";

/** The format that a request for embeddings asks for. */
export function vectorFormatOf(asked: JsonValue | undefined): VectorFormat {
  return asked === "base64" ? "base64" : "float";
}

/**
 * Embeddings as we show them: one vector for each input, in the order of the inputs and in the format that was asked for, and nothing
 * else of upstream's. Throws `UpstreamFailure` where they are not all there.
 */
export function readEmbeddings(
  found: JsonObject,
  { modelId, inputs, format }: { modelId: string; inputs: number; format: VectorFormat },
): ReadAnswer {
  const usage = usageOf(found.usage);
  const vectors: JsonValue[] = [];
  const room = { bytes: answerLimits.jsonBytes };
  const data = Array.isArray(found.data) ? found.data : [];
  // Some servers number every row 0.
  const isNumbered = data.some((item) => isJsonObject(item) && (item.index ?? 0) !== 0);
  for (const [place, item] of data.entries()) {
    const vector = isJsonObject(item) ? vectorOf(item.embedding, format, room) : undefined;
    if (!isJsonObject(item) || vector === undefined) break;
    const index = (isNumbered ? item.index : undefined) ?? place;
    if (typeof index === "number" && !(index in vectors)) vectors[index] = vector;
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

const floatBytes = 4;
/** Characters of a 32-bit float as JSON, at most, and the comma behind it. */
const numberCharacters = 25;

/** A vector in the format; undefined where it is none. `room`: that numbers made of base64 have in the answer. */
function vectorOf(
  value: JsonValue | undefined,
  format: VectorFormat,
  room: { bytes: number },
): JsonValue | undefined {
  if (typeof value === "string") {
    if (!/^[A-Za-z0-9+/]+={0,2}$/.test(value)) return undefined;
    const bytes = Buffer.from(value, "base64");
    if (bytes.length === 0 || bytes.length % floatBytes !== 0) return undefined;
    if (format === "float") return numbersOf(bytes, room);
    // Many decoders want the padding that some servers leave out.
    return value.length % 4 === 0 ? value : bytes.toString("base64");
  }
  const isVector = Array.isArray(value) && value.length > 0 && value.every(isNumber);
  if (!isVector) return undefined;
  return format === "base64" ? base64Of(value) : value;
}

/** One that 32 bits can hold: any other would be infinite as base64, and JSON has none that is infinite. */
function isNumber(value: JsonValue): value is number {
  return typeof value === "number" && Number.isFinite(Math.fround(value));
}

function base64Of(numbers: readonly number[]): string {
  const bytes = Buffer.alloc(numbers.length * floatBytes);
  for (const [place, number] of numbers.entries()) bytes.writeFloatLE(number, place * floatBytes);
  return bytes.toString("base64");
}

/** Undefined where one is no number that JSON has. */
function numbersOf(bytes: Buffer, room: { bytes: number }): number[] | undefined {
  // As numbers it is five times as long: longer than an answer may be, it would not have come as numbers either.
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
