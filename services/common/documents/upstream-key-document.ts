// Shows a stored key of an upstream to operators, in the console and by the command. The key itself is in no document.

import type { UpstreamKey } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { isoTimeOrNull } from "./answer-values.ts";

/** A stored key, without its value. */
export function upstreamKeyDocument({ name, hint, setTime, actor, upstreams }: UpstreamKey) {
  return {
    object: "upstream.key",
    ...{ name, hint: hint || null },
    setAt: isoTimeOrNull(setTime),
    ...{ actor, upstreams },
  };
}
