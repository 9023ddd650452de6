import { expect, test } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import { createAlerts } from "../alerts/alerts.ts";
import { createAlertStore } from "../alerts/store-documents.ts";
import { createBillingEvents } from "../base/events.ts";
import { countedAtOnce, countingMs } from "../base/limits.ts";
import type { Operation } from "../ledger/operations.ts";
import type { LedgerStore } from "../ledger/store.ts";
import { createSqliteLedger } from "../ledger/store-sqlite.ts";
import { readKeyUsage } from "./key-usage.ts";
import { createSqliteUsage } from "./store-sqlite-usage.ts";
import { createCounting } from "./usage-counting.ts";

const wallet = { accountId: "acct_a", unit: "usd_micros" } as const;
const now = Date.UTC(2026, 0, 15, 12);
const checkAt = now + 1_000_000;

test("a long journal is counted over several calls; the month is there at once", async () => {
  const db = openSqlite(":memory:");
  const store = createSqliteLedger(db);
  const usage = createSqliteUsage(db);
  await store.open();
  await usage.open();
  const times = countedAtOnce;
  const grant: Operation = { kind: "grant", grantId: "g", amount: 1_000_000n };
  const charges = Array.from({ length: times }, (_, i): Operation[] => {
    const holdId = `hold_${String(i).padStart(8, "0")}`;
    return [
      { kind: "reserve", holdId, amount: 1n, holdKind: "text", keyId: "key_a", ref: "r", checkAt },
      { kind: "settle", holdId, amount: 1n },
    ];
  });
  await store.apply(wallet, [grant, ...charges.flat()], now);
  const clock = manualClock(now);
  // Each page takes as long as a call may.
  const entries: LedgerStore["entries"] = async (...asked) => {
    await clock.leap(countingMs);
    return store.entries(...asked);
  };
  const slow = { ...store, entries };
  const log = createLogger("silent");
  const events = createBillingEvents({ log, metrics: createMetrics(), ids: randomIds, clock });
  const alertStore = createAlertStore({ kind: "sqlite", sqlite: db });
  await alertStore.open();
  const alerts = createAlerts({ store: alertStore, clock, events });
  const counting = createCounting({ store: slow, usage, alerts, clock, events });
  const ask = async () =>
    (await readKeyUsage({ store, usage, counting, clock }, "acct_a", ["key_a"]))[0];
  const spent = BigInt(times);
  const month = { keyId: "key_a", monthSpent: spent, held: 0n };
  expect(await ask()).toEqual(month);
  expect(await ask()).toEqual(month);
  const whole = { ...month, totals: { spent, daySpent: spent, weekSpent: spent } };
  expect(await ask()).toEqual(whole);
  // Like after a restart: counted entries stay counted.
  const next = createCounting({
    ...{ store: { ...store, entries: () => Promise.reject(new Error("read")) } },
    ...{ usage, alerts, clock, events },
  });
  expect(await readKeyUsage({ store, usage, counting: next, clock }, "acct_a", ["key_a"])).toEqual([
    whole,
  ]);
});
