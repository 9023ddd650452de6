// The methods of TextService about upstreams: health, history and probes. Operators call them. `routes.ts` has the others.

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { TextService } from "#proto/genmesh/text/v1/text_service_pb.ts";
import { keptHours, type UpstreamHistoryKeeper } from "../upstreams/health/history.ts";
import type { HistoryFigures } from "../upstreams/health/hours.ts";
import type { UpstreamHealth } from "../upstreams/health/index.ts";
import type { Prober } from "./prober.ts";

/** Dependencies of the methods. */
export interface UpstreamRoutesContext {
  health: Pick<UpstreamHealth, "read">;
  history: Pick<UpstreamHistoryKeeper, "read">;
  prober: Prober;
}

/** The methods of TextService about upstreams. */
export function createUpstreamRoutes(
  context: UpstreamRoutesContext,
): Pick<
  ServiceImpl<typeof TextService>,
  "listUpstreamHealth" | "listUpstreamHistory" | "probeUpstream"
> {
  return {
    async listUpstreamHealth() {
      const { upstreams, processes } = await context.health.read();
      return {
        processes,
        upstreams: upstreams.map(({ requests, errors, emptyAtMs, resting, ...one }) => ({
          ...one,
          resting: [...resting],
          requests: BigInt(requests),
          errors: BigInt(errors),
          ...(emptyAtMs === undefined ? {} : { accountEmptyTime: timestampFromMs(emptyAtMs) }),
        })),
      };
    },
    async listUpstreamHistory({ hours }) {
      if (hours < 1 || hours > keptHours) {
        refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "hours" } });
      }
      const upstreams = await context.history.read(hours);
      return {
        upstreams: upstreams.map(({ name, all, models, hours }) => ({
          name,
          all: figuresMessage(all),
          models: models.map(({ id, figures }) => ({ id, figures: figuresMessage(figures) })),
          hours: hours.map(({ start, requests, errors }) => ({
            startSeconds: BigInt(start),
            requests: BigInt(requests),
            errors: BigInt(errors),
          })),
        })),
      };
    },
    probeUpstream: ({ name }, { signal }) => context.prober.probe(name, signal),
  };
}

function figuresMessage({ requests, errors, errorKinds, first, answered }: HistoryFigures) {
  const kinds = Object.entries(errorKinds).map(([kind, count]) => [kind, BigInt(count)]);
  return {
    requests: BigInt(requests),
    errors: BigInt(errors),
    errorKinds: Object.fromEntries(kinds),
    firstP50Ms: first.p50Ms,
    firstP95Ms: first.p95Ms,
    p50Ms: answered.p50Ms,
    p95Ms: answered.p95Ms,
  };
}
