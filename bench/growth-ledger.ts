import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import type { Database } from "#kit/store/database.ts";
import { systemClock } from "#kit/time/clock.ts";
import { createAlerts } from "../services/billing/alerts/alerts.ts";
import { createAlertStore } from "../services/billing/alerts/store-documents.ts";
import { createBillingEvents } from "../services/billing/base/events.ts";
import { createLedgerStore, createUsageStore } from "../services/billing/index.ts";
import type { Operation } from "../services/billing/ledger/operations.ts";
import { createCounting } from "../services/billing/usage/usage-counting.ts";

/** A ledger of one account. */
export interface LedgerSize {
  accountId: string;
  /** The keys that are charged in turn. */
  keyIds: readonly string[];
  /** Entries of the dollars' wallet: two for each request. */
  entries: number;
}

/** Days of requests until now: as many as one page of usage has. */
const days = 31;
const dayMs = 86_400_000;
/** Least number of batches. Each hour has some, so that the rollup of a small ledger has all rows of a large one's. */
const leastBatches = 3_000;
/** Operations that are written at once, at most. All of them have one time. */
const mostAtOnce = 256;
/** Holds that are left open. */
const openHolds = 20;
/** One request of this number failed. */
const oneFailedOf = 50;

/** Models of the requests, in turn. Few requests name the last one. */
export const ledgerModels = ["often", "often", "sometimes", "seldom"] as const;
const operations = { often: "responses", sometimes: "chat", seldom: "speech" } as const;

/** The ids of the answer and of the caller's request at a place in the ledger. */
export const answerIdOf = (request: number) => `resp_${String(request).padStart(24, "0")}`;
export const requestIdOf = (request: number) => `req_${String(request).padStart(24, "0")}`;

/** The time of the first request's charge, in ms since the epoch. */
export function firstTime(now: number): number {
  return Math.floor(now / dayMs) * dayMs - (days - 1) * dayMs;
}

/**
 * Writes a journal through the product's own ledger, and counts it. It can be audited. Requests are evenly spread from the first day to
 * `now`, over all keys and models.
 */
export async function fillLedger(
  database: Database,
  { accountId, keyIds, entries }: LedgerSize,
  { now, signal }: { now: number; signal: AbortSignal },
): Promise<void> {
  const store = createLedgerStore(database);
  const usage = createUsageStore(database);
  const wallet = { accountId, unit: "usd_micros" } as const;
  const requests = Math.floor(entries / 2);
  const atOnce = Math.max(1, Math.min(mostAtOnce / 2, Math.floor(requests / leastBatches)));
  const begin = firstTime(now);
  const timeOf = (request: number) =>
    begin + Math.floor(((now - begin) * Math.floor(request / atOnce)) / (requests / atOnce));
  for (let from = 0; from < requests; from += atOnce) {
    signal.throwIfAborted();
    const at = timeOf(from);
    const count = Math.min(atOnce, requests - from);
    const all = Array.from({ length: count }, (_, i) => requestAt(from + i, { at, keyIds }));
    await store.apply(wallet, all.flat(), at);
  }
  const holds = Array.from({ length: openHolds }, (_, i) => {
    const [reserve] = requestAt(requests + i, { at: now, keyIds });
    return reserve;
  });
  await store.apply(
    wallet,
    holds.filter((hold) => hold !== undefined),
    now,
  );
  const metrics = createMetrics();
  const events = createBillingEvents({
    ...{ log: createLogger("silent"), metrics, ids: randomIds, clock: systemClock },
  });
  const alertStore = createAlertStore(database);
  await alertStore.open();
  const alerts = createAlerts({ store: alertStore, clock: systemClock, events });
  const counting = createCounting({ store, usage, alerts, clock: systemClock, events });
  await counting.catchUpWallet(wallet);
}

/** A request's hold and its charge. */
function requestAt(
  request: number,
  { at, keyIds }: { at: number; keyIds: readonly string[] },
): Operation[] {
  const holdId = `hold_${String(request).padStart(12, "0")}`;
  const keyId = keyIds[request % keyIds.length] ?? "";
  const model = ledgerModels[Math.floor(request / keyIds.length) % ledgerModels.length] ?? "often";
  const hasFailed = request % oneFailedOf === 0;
  const record = JSON.stringify({
    ...{ model, operation: operations[model], status: hasFailed ? "failed" : "completed" },
    ...{ streamed: request % 2 === 0, estimated: false, upstream: "mock" },
    ...{ inputTokens: 120, cachedInputTokens: 0, outputTokens: 300, reasoningTokens: 0 },
    ...{ startMs: at - 1_500, firstOutputMs: at - 1_200, endMs: at },
    ...{ answerId: answerIdOf(request), requestId: requestIdOf(request), finishReason: "stop" },
  });
  const amount = hasFailed ? 0n : 40n;
  const hold = { holdId, holdKind: "text", keyId, ref: holdId } as const;
  return [
    { kind: "reserve", ...hold, amount: 100n, checkAt: at + 365 * dayMs },
    { kind: "draw", holdId, amount, keyId, record },
  ];
}
