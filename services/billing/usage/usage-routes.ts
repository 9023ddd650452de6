// Answers the methods of BillingService that read usage: sums by time, lines, searches, margins.

import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { turn } from "#kit/base/in-turns.ts";
import type { BillingService, UsageBucket } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { maxGroupedSeconds, maxUsageResults } from "../base/limits.ts";
import { holdMessage } from "../ledger/messages.ts";
import { readAccountId, readPageSize } from "../ledger/requests.ts";
import type { LedgerStore } from "../ledger/store.ts";
import { readMargins } from "./margins.ts";
import type { Counting } from "./usage-counting.ts";
import {
  lineMessage,
  placeToken,
  readFindLine,
  readKeyId,
  readLinesRequest,
  readSearch,
  readUsageRequest,
  searchToken,
  usageResults,
} from "./usage-messages.ts";
import type { UsageStore } from "./usage-store.ts";

/** The parts that the methods need. */
export interface UsageRoutesContext {
  store: Pick<LedgerStore, "holds">;
  usage: UsageStore;
  counting: Counting;
}

type UsageMethods = Pick<
  ServiceImpl<typeof BillingService>,
  "getUsage" | "getMargins" | "listLines" | "findLine" | "searchLines" | "listAccountHolds"
>;

/** The methods of BillingService that read usage. The proto file states their promises. */
export function createUsageRoutes({ store, usage, counting }: UsageRoutesContext): UsageMethods {
  return {
    async getUsage(request) {
      const query = readUsageRequest(request);
      await counting.catchUpAll(query.accountId);
      const { until, width } = query;
      const buckets: Pick<UsageBucket, "startSeconds" | "results">[] = [];
      let results = 0;
      for (let from = query.from; from < until && results < maxUsageResults; ) {
        const end = Math.min(from + maxGroupedSeconds, until);
        const asked = { ...query, from, until: end };
        const [groups, served] = await Promise.all([
          usage.groups(asked).then(byStart),
          usage.served({ ...asked, byUpstream: false }).then(byStart),
        ]);
        for (; from < end && results < maxUsageResults; from += width) {
          const bucket = usageResults(groups.get(from) ?? [], served.get(from) ?? []);
          results += bucket.length;
          buckets.push({ startSeconds: BigInt(from), results: bucket });
        }
        // Other requests come first.
        await turn();
      }
      return { buckets };
    },
    getMargins: (request) => readMargins({ usage, counting }, request),
    async listLines(request) {
      const query = readLinesRequest(request);
      await counting.catchUp(query.accountId);
      const { lines, next } = await usage.lines(query);
      return {
        lines: lines.map((line) => lineMessage(line, request.forOperator)),
        hasMore: next !== undefined,
        nextPageToken: next === undefined || query.before ? "" : placeToken(next),
      };
    },
    async findLine(request) {
      const { accountId, keyId, id } = readFindLine(request);
      await counting.catchUp(accountId);
      const line = await usage.find(accountId, keyId, id);
      if (!line) refuse(ErrorReason.REQUEST_NOT_FOUND);
      return { line: lineMessage(line, false) };
    },
    async searchLines(request) {
      const { id, query } = readSearch(request);
      if (id !== "")
        return { lines: (await usage.findAll(id)).map((one) => lineMessage(one, true)) };
      if (query.accountId !== undefined) await counting.catchUp(query.accountId);
      const { lines, next } = await usage.lines(query);
      return {
        lines: lines.map((line) => lineMessage(line, true)),
        nextPageToken: next ? searchToken(next) : "",
      };
    },
    async listAccountHolds(request) {
      const accountId = readAccountId(request.accountId);
      const keyId = readKeyId(request.keyId);
      const limit = readPageSize(request.pageSize);
      const after = request.pageToken || undefined;
      const { items, next } = await store.holds({ accountId, keyId, limit, after });
      return { holds: items.map(holdMessage), nextPageToken: next ?? "" };
    },
  };
}

function byStart<Group extends { start: number }>(groups: readonly Group[]): Map<number, Group[]> {
  return Map.groupBy(groups, ({ start }) => start);
}
