// A catalog whose upstreams speak Messages, for tests of requests in that form.

import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  ChatSpecSchema,
  Snapshot,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";
import { testUpstream } from "../../../test/support/text-requests.ts";

/** The usual catalog, whose upstreams all speak Messages. `changes`: the catalog's keys of one. */
export function nativeSnapshot(
  changes: (name: string) => MessageInitShape<typeof UpstreamSchema> = () => ({}),
  spec: MessageInitShape<typeof ChatSpecSchema> = {},
): Snapshot {
  const snapshot = snapshotWith(spec);
  for (const name of Object.keys(snapshot.upstreams)) {
    snapshot.upstreams[name] = testUpstream("ANTHROPIC", { ...changes(name), name });
  }
  return snapshot;
}
