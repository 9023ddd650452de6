// Answers operators what they earned: charges beside the cost at the upstreams, by day, model or upstream.

import { create } from "@bufbuild/protobuf";
import { turn } from "#kit/base/in-turns.ts";
import {
  type GetMarginsRequest,
  type GetMarginsResponse,
  GetMarginsResponseSchema,
  type Margin,
  MarginSchema,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { maxGroupedSeconds, maxMarginDays, maxUsageResults } from "../base/limits.ts";
import { broken, readAccountId } from "../ledger/requests.ts";
import type { Counting } from "./usage-counting.ts";
import { maxStartSeconds } from "./usage-messages.ts";
import type { ServedGroup, ServedQuery, UsageStore } from "./usage-store.ts";

const daySeconds = 86_400;

/** The charges of requests and their costs at the upstreams. The proto file states the promises. */
export async function readMargins(
  { usage, counting }: { usage: Pick<UsageStore, "served">; counting: Counting },
  request: GetMarginsRequest,
): Promise<GetMarginsResponse> {
  const query = readQuery(request);
  if (query.accountId !== undefined) await counting.catchUpAll(query.accountId);
  const { byDay } = request;
  const margins = new Map<string, Margin>();
  let { from } = query;
  while (from < query.until && !(byDay && margins.size >= maxUsageResults)) {
    const until = Math.min(from + maxGroupedSeconds, query.until);
    for (const group of await usage.served({ ...query, from, until })) {
      addTo(margins, byDay ? group : { ...group, start: 0 });
    }
    from = until;
    // Other requests come first.
    await turn();
  }
  const sorted = [...margins].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, margin]) => margin);
  const nextStartSeconds = from < query.until ? BigInt(from) : 0n;
  return create(GetMarginsResponseSchema, { margins: sorted, nextStartSeconds });
}

/** Checks a request. Refuses with INVALID_ARGUMENT, and names the field. */
function readQuery(message: GetMarginsRequest): ServedQuery {
  const { days, byModel, byUpstream } = message;
  const from = Number(message.startSeconds);
  if (from % daySeconds !== 0 || from < 0 || from > maxStartSeconds) broken("start_seconds");
  if (days < 1 || days > maxMarginDays) broken("days");
  return {
    accountId: message.accountId === "" ? undefined : readAccountId(message.accountId),
    ...{ from, until: from + days * daySeconds, width: daySeconds },
    ...{ byKey: false, byKind: false, byModel, byUpstream },
  };
}

function addTo(
  margins: Map<string, Margin>,
  { start, unit, model, upstream, sums }: ServedGroup,
): void {
  // Twelve digits, so that days sort as texts.
  const name = JSON.stringify([String(start).padStart(12, "0"), model, upstream]);
  const margin =
    margins.get(name) ?? create(MarginSchema, { startSeconds: BigInt(start), model, upstream });
  margins.set(name, margin);
  margin.requests += sums.requests;
  if (unit === "credits") {
    // Credits and dollars cannot be compared.
    margin.spentCredits += sums.spent;
    return;
  }
  margin.spentUsdMicros += sums.spent;
  margin.costedRequests += sums.costedRequests;
  margin.costedUsdMicros += sums.costedSpent;
  margin.upstreamCostUsdMicros += sums.upstreamCost;
}
