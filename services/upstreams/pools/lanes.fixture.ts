// Makes lanes for tests of pools.

import { create } from "@bufbuild/protobuf";
import { UpstreamSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { Lane } from "./lanes.ts";

/** A lane of level 0 and weight 1, unless `more` says otherwise. */
export function lane(name: string, more: Partial<Lane> = {}): Lane {
  const upstream = create(UpstreamSchema, { name, apiKeyEnv: "KEY" });
  return { upstream, level: 0, weight: 1, upstreamModel: "m", ...more };
}
