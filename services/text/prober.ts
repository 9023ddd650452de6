// Asks an upstream whether it works, when an operator wants to know. Only a few such questions run at once.

import type { LiveCatalog } from "#common/agreements/catalog-client.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { createFairShare, inTurn } from "#kit/share/fair-share.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { UpstreamProbe } from "../upstreams/online/probe.ts";
import { probeMs, probeShare } from "./base/limits.ts";

/** Asks an upstream of a snapshot. Undefined where that has none of the name. */
export type ProbeUpstream = (
  snapshot: Snapshot,
  name: string,
  signal: AbortSignal,
) => Promise<UpstreamProbe | undefined>;

/** Asks upstreams for operators. */
export interface Prober {
  /**
   * Asks an upstream of the catalog in force, for at most 25 s. Refuses with OBJECT_NOT_FOUND where there is none of the name, and with
   * RATE_LIMIT_EXCEEDED where too many operators ask.
   */
  probe(name: string, signal: AbortSignal): Promise<UpstreamProbe & { durationMs: bigint }>;
}

/** Makes a prober. */
export function createProber({
  catalog,
  clock,
  probeUpstream,
}: {
  catalog: LiveCatalog;
  clock: Clock;
  probeUpstream: ProbeUpstream;
}): Prober {
  const full = () => new RefusalError(ErrorReason.RATE_LIMIT_EXCEEDED);
  const share = createFairShare(probeShare, { full, late: full });
  return {
    probe: (name, signal) =>
      // Every probe is an operator's.
      inTurn(share, { accountId: "operator", signal }, async () => {
        const begunMs = clock.steady();
        const until = AbortSignal.any([signal, AbortSignal.timeout(probeMs)]);
        const probe = await probeUpstream(catalog.current().snapshot, name, until);
        if (!probe) refuse(ErrorReason.OBJECT_NOT_FOUND);
        return { ...probe, durationMs: BigInt(Math.round(clock.steady() - begunMs)) };
      }),
  };
}
