// The operator's route for margins: charges beside the cost at the upstreams.

import type { FastifyInstance } from "fastify";
import { marginDocument } from "#common/documents/margin-document.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { queryList, querySeconds } from "../../query.ts";
import { type AdminCall, adminRoute } from "./context.ts";

const daySeconds = 86_400;
const groups = ["day", "model", "upstream"];

/** The route of what requests were charged and what they cost the operator. */
export function marginRoutes(app: FastifyInstance, edge: Edge): void {
  adminRoute(app, edge, { method: "GET", url: "/margins", handle: margins });
}

/** Days (UTC) from that of `start_time` on, before `end_time`. `next` is the first one that the answer lacks. */
async function margins(call: AdminCall) {
  const start = querySeconds(call.request, "start_time");
  if (start === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "start_time" });
  }
  const end = querySeconds(call.request, "end_time") ?? Math.floor(call.clock.now() / 1_000) + 1;
  const by = queryList(call.request, "group_by", groups.length * 2);
  if (!by.every((name) => groups.includes(name))) {
    const message = `The parameter 'group_by' must be one or more of: ${groups.join(", ")}.`;
    refuse(ErrorReason.INVALID_VALUE, { param: "group_by", message });
  }
  const first = Math.floor(start / daySeconds);
  const days = Math.ceil(end / daySeconds) - first;
  const accountId = call.query("account");
  if (accountId !== "") await call.peers.auth.getAccount({ accountId }, call.options);
  const answer = await call.peers.billing.getMargins(
    {
      ...{ accountId, startSeconds: BigInt(first * daySeconds), days: Math.max(days, 0) },
      byDay: by.includes("day"),
      byModel: by.includes("model"),
      byUpstream: by.includes("upstream"),
    },
    call.options,
  );
  const next = answer.nextStartSeconds === 0n ? null : answer.nextStartSeconds;
  return { object: "list", data: answer.margins.map(marginDocument), next };
}
