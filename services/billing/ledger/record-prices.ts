import type { RequestRecord } from "#common/agreements/hold-client.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

type Parts = NonNullable<RequestRecord["priced"]>;

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

/** The parts of a record that have prices of their own, as JSON: only those that are there. */
export function pricedText(parts: Parts): JsonObject {
  const { toolCalls, servedTier, upstreamCostUsdMicros, upstreamCostSource } = parts;
  const text: JsonObject = {};
  for (const name of counts) {
    const count = parts[name] ?? 0n;
    if (count > 0n) text[name] = Number(count);
  }
  if (toolCalls && Object.keys(toolCalls).length > 0) {
    const calls = Object.entries(toolCalls).map(([family, count]) => [family, Number(count)]);
    text.toolCalls = Object.fromEntries(calls);
  }
  if (servedTier) text.servedTier = servedTier;
  if (upstreamCostUsdMicros !== undefined) {
    text.upstreamCostUsdMicros = Number(upstreamCostUsdMicros);
    text.upstreamCostSource = upstreamCostSource ?? "";
  }
  return text;
}

/** The message of such JSON. */
export function pricedMessage(text: JsonObject): Parts {
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

function countOf(value: JsonValue | undefined): bigint {
  return BigInt(Math.trunc(Number(value ?? 0)));
}
