// The operator's route that lists and finds requests of all accounts that have ended.

import type { FastifyInstance } from "fastify";
import { unitName } from "#common/documents/answer-values.ts";
import { operatorPricedDocument } from "#common/documents/priced-document.ts";
import type { Line } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Edge } from "../../context.ts";
import { queryOneOf, queryRange } from "../../query.ts";
import { toRequestDocument, usageKinds, usageStatuses } from "../../usage-query.ts";
import { namedListOf } from "./account-names.ts";
import { type AdminCall, adminRoute } from "./context.ts";
import { findKey } from "./keys.ts";
import { linePagesSearched } from "./limits.ts";

/** The route of the requests and jobs of all accounts that ended. */
export function requestRoutes(app: FastifyInstance, edge: Edge): void {
  adminRoute(app, edge, { method: "GET", url: "/requests", handle: list });
}

const kinds = Object.fromEntries(usageKinds.map((kind) => [kind, kind]));
const statuses = Object.fromEntries(usageStatuses.map((status) => [status, status]));

/** Newest first, from `start_time` on and before `end_time`. `id` is that of an answer, a job or a caller's HTTP request. */
async function list(call: AdminCall) {
  const { billing } = call.peers;
  const id = call.query("id");
  if (id !== "") {
    const { lines } = await billing.searchLines({ id }, call.options);
    return namedListOf(call, lines.map(requestDocument));
  }
  const kind = queryOneOf(call.request, "kind", kinds);
  const asked = {
    ...(await accountAndKey(call)),
    model: call.query("model"),
    upstream: call.query("upstream"),
    status: queryOneOf(call.request, "status", statuses) ?? "",
    kinds: kind ? [kind] : [],
    ...queryRange(call.request),
  };
  const { pageSize, pageToken } = call.page();
  const lines: Line[] = [];
  let after = pageToken;
  // A page of a rare filter may be empty although lines follow.
  for (let looked = 0; looked < linePagesSearched && lines.length === 0; looked++) {
    const page = { pageSize, pageToken: after };
    const found = await billing.searchLines({ ...asked, ...page }, call.options);
    lines.push(...found.lines);
    after = found.nextPageToken;
    if (after === "") break;
  }
  return namedListOf(call, lines.map(requestDocument), after);
}

/** A key belongs to one account, so that its lines are found along the account's. */
async function accountAndKey(call: AdminCall) {
  const [accountId, keyId] = [call.query("account"), call.query("key")];
  if (accountId !== "") await call.peers.auth.getAccount({ accountId }, call.options);
  if (keyId === "" || accountId !== "") return { accountId, keyId };
  return { accountId: (await findKey(call, keyId)).accountId, keyId };
}

/** A request as operators see it: with its account, its upstreams and their failures. Never with what its caller wrote or got. */
function requestDocument(line: Line) {
  const { record } = line;
  const { upstreamKind = "", upstreamStatus = 0 } = record?.failure ?? {};
  return {
    ...toRequestDocument(line),
    ...operatorPricedDocument(record),
    accountId: line.accountId,
    upstreamFailure:
      upstreamKind === "" ? null : { kind: upstreamKind, status: upstreamStatus || null },
    unit: unitName(line.unit),
    entry: line.number,
  };
}
