// Carries the parts of a request that have prices of their own (cache writes, audio, images, tools) and its upstream's cost. It
// turns them from a record in memory into JSON, which billing stores, and into billing's message, and back.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { PricedParts } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

/** Counts, of which most requests have none. */
const counts = [
  "inputCacheWriteTokens",
  "inputCacheWriteLongTokens",
  "inputAudioTokens",
  "inputImageTokens",
  "outputAudioTokens",
  "outputImageTokens",
  "priceAboveInputTokens",
] as const;

/** Parts of a request that have prices of their own, and what its upstream costs. A part that is absent is empty or 0. */
export type PricedRecord = {
  [Count in (typeof counts)[number]]?: number | undefined;
} & {
  toolCalls?: Readonly<Record<string, number>> | undefined;
  servedTier?: string | undefined;
  /** In USD micros. Absent: unknown. */
  upstreamCostUsdMicros?: number | undefined;
  upstreamCostSource?: string | undefined;
};

/** The parts that are there, as JSON. */
export function pricedText(parts: PricedRecord): JsonObject {
  const { toolCalls = {}, servedTier, upstreamCostUsdMicros, upstreamCostSource } = parts;
  const text: JsonObject = {};
  for (const name of counts) {
    const count = parts[name] ?? 0;
    if (count > 0) text[name] = count;
  }
  if (Object.keys(toolCalls).length > 0) text.toolCalls = { ...toolCalls };
  if (servedTier) text.servedTier = servedTier;
  if (upstreamCostUsdMicros !== undefined) {
    text.upstreamCostUsdMicros = upstreamCostUsdMicros;
    text.upstreamCostSource = upstreamCostSource ?? "";
  }
  return text;
}

/** The message of such JSON. */
export function pricedMessage(text: JsonObject) {
  const { toolCalls, servedTier, upstreamCostUsdMicros, upstreamCostSource } = text;
  const calls = isJsonObject(toolCalls) ? Object.entries(toolCalls) : [];
  return {
    ...Object.fromEntries(counts.map((name) => [name, countOf(text[name])])),
    toolCalls: Object.fromEntries(calls.map(([family, count]) => [family, countOf(count)])),
    servedTier: String(servedTier ?? ""),
    upstreamCostSource: String(upstreamCostSource ?? ""),
    ...(upstreamCostUsdMicros === undefined
      ? {}
      : { upstreamCostUsdMicros: countOf(upstreamCostUsdMicros) }),
  };
}

/** The parts in a message. */
export function pricedOf(parts: PricedParts): PricedRecord {
  const { toolCalls, servedTier, upstreamCostUsdMicros: cost, upstreamCostSource } = parts;
  const calls = Object.entries(toolCalls).map(([family, count]) => [family, Number(count)]);
  return {
    ...Object.fromEntries(counts.map((name) => [name, Number(parts[name])])),
    toolCalls: Object.fromEntries(calls),
    ...{ servedTier, upstreamCostSource },
    upstreamCostUsdMicros: cost === undefined ? undefined : Number(cost),
  };
}

function countOf(value: JsonValue | undefined): bigint {
  return BigInt(Math.trunc(Number(value ?? 0)));
}
