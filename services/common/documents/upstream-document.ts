// Shows the health of each upstream to operators, from the catalog and from what text and media have counted.

import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type Snapshot, UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  type ListUpstreamHealthResponse,
  type UpstreamHealth,
  UpstreamHealthSchema,
} from "#proto/genmesh/text/v1/text_service_pb.ts";
import { isoTimeOrNull } from "./answer-values.ts";

/** An upstream fails where this part of its requests ended in errors. The alert GenmeshUpstreamFails has the same threshold. */
export const failingShare = 0.2;
/**
 * An account at an upstream counts as empty for this many milliseconds after it was last found empty. The alert
 * GenmeshUpstreamAccountEmpty uses the same time.
 */
export const emptyForMs = 15 * 60_000;

/** Every upstream of the catalog by name, with the observations of all processes. */
export function upstreamDocuments(
  snapshot: Snapshot,
  health: Pick<ListUpstreamHealthResponse, "upstreams">,
  nowMs: number,
) {
  const figures = new Map(health.upstreams.map((one) => [one.name, one]));
  const documents = Object.values(snapshot.upstreams).map((upstream) => {
    const seen = figures.get(upstream.name) ?? create(UpstreamHealthSchema);
    const [requests, errors] = [Number(seen.requests), Number(seen.errors)];
    return {
      object: "upstream",
      name: upstream.name,
      protocol: protocolName(upstream.protocol),
      state: stateOf(seen, nowMs),
      ...{ requests, errors, errorRate: requests === 0 ? 0 : errors / requests },
      latencyMs: percentilesOf(seen.p50Ms, seen.p95Ms),
      inFlight: seen.inFlight,
      busiest: seen.busiest,
      slots: upstream.maxConcurrent || null,
      lastError: seen.lastError || null,
      accountEmptyAt: isoTimeOrNull(seen.accountEmptyTime),
      resting: seen.resting,
      models: snapshot.models
        .filter((one) => [one.upstream, ...one.fallbackUpstreams].includes(upstream.name))
        .map(({ id }) => id),
    };
  });
  return documents.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** A median and a 95th percentile in milliseconds. Null: nothing was measured. */
export function percentilesOf(p50: number | undefined, p95: number | undefined) {
  return p50 === undefined ? null : { p50, p95: p95 ?? p50 };
}

/** A protocol's name in the enum, in lower case. */
function protocolName(protocol: UpstreamProtocol): string {
  const names = Object.entries(UpstreamProtocol);
  return names.find(([, value]) => value === protocol)?.[0].toLowerCase() ?? "";
}

function stateOf({ requests, errors, accountEmptyTime }: UpstreamHealth, nowMs: number) {
  const emptyAtMs = accountEmptyTime ? timestampMs(accountEmptyTime) : 0;
  if (nowMs - emptyAtMs < emptyForMs) return "account_empty";
  if (requests === 0n) return "unknown";
  return Number(errors) / Number(requests) > failingShare ? "failing" : "healthy";
}
