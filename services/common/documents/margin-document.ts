// Shows operators the charges and costs of requests, in the console and by the command.

import type { Margin } from "#proto/genmesh/billing/v1/billing_service_pb.ts";

const dayOf = (seconds: bigint) => new Date(Number(seconds) * 1_000).toISOString().slice(0, 10);

/** Charges and costs of some requests, as operators see them. `day` is "2026-11-28" (UTC), or null for all days together. */
export function marginDocument(margin: Margin) {
  const { startSeconds, model, upstream, costedUsdMicros, upstreamCostUsdMicros } = margin;
  return {
    object: "margin",
    day: startSeconds === 0n ? null : dayOf(startSeconds),
    model: model || null,
    upstream: upstream || null,
    requests: margin.requests,
    spentUsdMicros: margin.spentUsdMicros,
    spentCredits: margin.spentCredits,
    costedRequests: margin.costedRequests,
    costedUsdMicros,
    upstreamCostUsdMicros,
    marginUsdMicros: costedUsdMicros - upstreamCostUsdMicros,
  };
}
