// Builds the billing service from its parts: chooses the stores by the database, then starts and stops the sweeper, counting and
// alerts. The host is its caller.

import type { HoldOperations } from "#common/agreements/hold-client.ts";
import type { Peers } from "#common/agreements/peers.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Service } from "#kit/rpc/service.ts";
import type { Database } from "#kit/store/database.ts";
import type { Clock } from "#kit/time/clock.ts";
import { createAlerts } from "./alerts/alerts.ts";
import { createAlertStore } from "./alerts/store-documents.ts";
import { createBillingEvents } from "./base/events.ts";
import { runMonthlyGrants } from "./grants/monthly.ts";
import { createGrantStore } from "./grants/store-documents.ts";
import { createLocalHolds, type LedgerContext } from "./ledger/apply.ts";
import type { LedgerStore } from "./ledger/store.ts";
import { createMongoLedger, type MongoLedgerOptions } from "./ledger/store-mongo.ts";
import { createSqliteLedger } from "./ledger/store-sqlite.ts";
import { createBillingRoutes } from "./routes.ts";
import { createHoldSweeper } from "./sweeper.ts";
import { createKeyTotals, withKeyTotals } from "./usage/key-totals.ts";
import { createMongoUsage } from "./usage/store-mongo-usage.ts";
import { createSqliteUsage } from "./usage/store-sqlite-usage.ts";
import { createCounting } from "./usage/usage-counting.ts";
import type { UsageStore } from "./usage/usage-store.ts";

/** The parts that billing needs. */
export interface BillingDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  /** The services that own holds. */
  peers: Pick<Peers, "text" | "media">;
}

/** The ledger in the process's database. */
export function createLedgerStore(database: Database): LedgerStore {
  return withKeyTotals(plainLedgerStore(database, {}));
}

/** The same without totals of keys that an earlier release did not keep. SQLite reports no conflicts. */
function plainLedgerStore(
  database: Database,
  options: Pick<MongoLedgerOptions, "onConflict">,
): LedgerStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteLedger(database.sqlite);
    case "mongodb":
      return createMongoLedger(database.mongo, options);
  }
}

/** The store of usage, which is made from the journals, beside them. */
export function createUsageStore(database: Database): UsageStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteUsage(database.sqlite);
    case "mongodb":
      return createMongoUsage(database.mongo);
  }
}

export { ledgerMongoSchema } from "./ledger/store-mongo-schema.ts";

/** The billing service: prepaid wallets, holds, and the journal that proves them. */
export function createBilling(deps: BillingDeps): Service & { holds: HoldOperations } {
  const events = createBillingEvents(deps);
  const { clock } = deps;
  const store = plainLedgerStore(deps.database, {
    onConflict: ({ unit }) => events.conflict(unit),
  });
  const usage = createUsageStore(deps.database);
  const alertStore = createAlertStore(deps.database);
  const grants = createGrantStore(deps.database);
  const alerts = createAlerts({ store: alertStore, clock, events });
  const counting = createCounting({ store, usage, alerts, clock, events });
  const counted = createKeyTotals(store);
  /** Makes refused operations again with the totals of their keys, and writes alerts of reached limits. */
  const toldOfRefusal: LedgerContext["told"] = async (wallet, operations, refused, now) => {
    const outcomes = await counted(wallet, operations, refused, now);
    counting.note(wallet);
    await alerts.afterRefusal(wallet, operations, outcomes, now);
    events.operations(wallet, operations, outcomes);
    return outcomes;
  };
  const ledger: LedgerContext = {
    ...{ store, clock, events },
    told(wallet, operations, outcomes, now) {
      for (const { kind } of outcomes) {
        if (kind === "refused") return toldOfRefusal(wallet, operations, outcomes, now);
      }
      counting.note(wallet);
      events.operations(wallet, operations, outcomes);
      return outcomes;
    },
  };
  const sweeper = createHoldSweeper({ ...ledger, peers: deps.peers });
  const life = new AbortController();
  let running: Promise<unknown> | undefined;

  async function stop(): Promise<void> {
    life.abort();
    await running;
  }
  return {
    name: "billing",
    holds: createLocalHolds(ledger),
    rpc: [createBillingRoutes({ ...ledger, usage, counting, alerts, grants })],
    async start() {
      await store.open();
      await usage.open();
      await alertStore.open();
      await grants.open();
      running = Promise.all([
        sweeper.run(life.signal),
        counting.run(life.signal),
        alerts.run(life.signal),
        runMonthlyGrants({ ...ledger, grants }, life.signal),
      ]);
    },
    notReady: () => (running ? undefined : "billing: the ledger is not open yet"),
    // Answers go on until the host closes its ports. Only billing's own questions stop.
    drain: () => stop(),
    [Symbol.asyncDispose]: stop,
  };
}
