// Shows which parts of a request were priced, to its caller, and with the costs to operators.

import type { PricedParts, RequestRecord } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

/** The parts of a request that may have prices of their own, as the public API shows them. */
export function pricedDocument(parts: PricedParts | undefined) {
  const { toolCalls = {}, servedTier = "" } = parts ?? {};
  return {
    inputCacheWriteTokens: Number(parts?.inputCacheWriteTokens ?? 0n),
    inputCacheWriteLongTokens: Number(parts?.inputCacheWriteLongTokens ?? 0n),
    inputAudioTokens: Number(parts?.inputAudioTokens ?? 0n),
    inputImageTokens: Number(parts?.inputImageTokens ?? 0n),
    outputAudioTokens: Number(parts?.outputAudioTokens ?? 0n),
    outputImageTokens: Number(parts?.outputImageTokens ?? 0n),
    toolCalls: Object.fromEntries(
      Object.entries(toolCalls).map(([family, count]) => [family, Number(count)]),
    ),
    priceAboveInputTokens: Number(parts?.priceAboveInputTokens ?? 0n),
    servedTier: servedTier || null,
  };
}

/** The same with the upstream, the failed tries at others, and its cost, which only an operator may know. */
export function operatorPricedDocument(record: RequestRecord | undefined) {
  const { upstreamCostUsdMicros: cost, upstreamCostSource: source } = record?.priced ?? {};
  return {
    ...pricedDocument(record?.priced),
    upstream: record?.upstream || null,
    failedTries: (record?.failedTries ?? []).map(({ lane, kind, status }) => ({
      ...{ upstream: lane, failure: kind, status: status || null },
    })),
    upstreamCostUsdMicros: cost === undefined ? null : Number(cost),
    upstreamCostSource: source || null,
  };
}
