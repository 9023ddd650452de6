// A lane is an upstream with one of its keys. Makes the lanes of a model, among which the pools choose.

import type { Upstream, UpstreamShare } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** An upstream with one of its keys, and its part in the requests of a model. */
export interface Lane {
  upstream: Upstream;
  /** Lanes of a level share its requests by weight. Those of the next level get what no lane of this level could answer. */
  level: number;
  /** Above 0, in proportion to the weights of its level. */
  weight: number;
  /** The upstream's name of the model. */
  upstreamModel: string;
}

/** The lanes of a model at these of its upstreams, level by level. Without shares each upstream is a level of its own. */
export function lanesOf(
  upstreams: readonly Upstream[],
  { shares, upstreamModel }: { shares: readonly UpstreamShare[]; upstreamModel: string },
): Lane[] {
  if (shares.length === 0) {
    return upstreams.map((upstream, level) => ({ upstream, level, weight: 1, upstreamModel }));
  }
  const shareOf = new Map(shares.map((share) => [share.upstream, share]));
  return upstreams.map((upstream, at) => {
    const { level = at, weight = 1, upstreamModel: own = "" } = shareOf.get(upstream.name) ?? {};
    return { upstream, level, weight, upstreamModel: own || upstreamModel };
  });
}

/** The upstream of a lane, by the lane's name: "main" of "main" and of "main#2". Its lanes share its places. */
export function upstreamOfLane(lane: string): string {
  const end = lane.indexOf("#");
  return end === -1 ? lane : lane.slice(0, end);
}
