import type { Clock } from "#kit/clock.ts";
import type { Database } from "#kit/database.ts";
import type { Ids } from "#kit/ids.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { Peers } from "#kit/peers.ts";
import type { Service } from "#kit/rpc/service.ts";
import type { AlertStore } from "./alert-store.ts";
import { createMongoAlerts } from "./alert-store-mongo.ts";
import { createSqliteAlerts } from "./alert-store-sqlite.ts";
import { createAlerts } from "./alerts.ts";
import type { LedgerContext } from "./apply.ts";
import { createBillingEvents } from "./events.ts";
import { withKeyTotals } from "./key-totals.ts";
import { createBillingRoutes } from "./routes.ts";
import type { LedgerStore } from "./store.ts";
import { createMongoLedger, type MongoLedgerOptions } from "./store-mongo.ts";
import { createMongoUsage } from "./store-mongo-usage.ts";
import { createSqliteLedger } from "./store-sqlite.ts";
import { createSqliteUsage } from "./store-sqlite-usage.ts";
import { createHoldSweeper } from "./sweeper.ts";
import { createCounting } from "./usage-counting.ts";
import type { UsageStore } from "./usage-store.ts";

/** What billing needs of its process. */
export interface BillingDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
  /** The owners of holds. */
  peers: Pick<Peers, "text" | "media">;
}

/** The ledger in the process's database. SQLite has no conflicts to tell of. */
export function createLedgerStore(
  database: Database,
  options: Pick<MongoLedgerOptions, "onConflict"> = {},
): LedgerStore {
  switch (database.kind) {
    case "sqlite":
      return withKeyTotals(createSqliteLedger(database.sqlite));
    case "mongodb":
      return withKeyTotals(createMongoLedger(database.mongo, options));
  }
}

/** Where alerts are kept: beside the journals. */
export function createAlertStore(database: Database): AlertStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteAlerts(database.sqlite);
    case "mongodb":
      return createMongoAlerts(database.mongo);
  }
}

/** Where what is made of the journals is kept: beside them. */
export function createUsageStore(database: Database): UsageStore {
  switch (database.kind) {
    case "sqlite":
      return createSqliteUsage(database.sqlite);
    case "mongodb":
      return createMongoUsage(database.mongo);
  }
}

export { alertsMongoSchema } from "./alert-store-mongo.ts";
export { ledgerMongoSchema } from "./store-mongo-schema.ts";

/** The billing service: prepaid wallets, holds, and the journal that proves them. */
export function createBilling(deps: BillingDeps): Service {
  const events = createBillingEvents(deps);
  const { clock } = deps;
  const store = createLedgerStore(deps.database, {
    onConflict: ({ unit }) => events.conflict(unit),
  });
  const usage = createUsageStore(deps.database);
  const alertStore = createAlertStore(deps.database);
  const alerts = createAlerts({ store: alertStore, clock, events });
  const counting = createCounting({ store, usage, alerts, clock, events });
  const ledger: LedgerContext = {
    store: {
      ...store,
      async apply(wallet, operations, now) {
        const outcomes = await store.apply(wallet, operations, now);
        counting.note(wallet);
        await alerts.afterApply(wallet, operations, outcomes, now);
        return outcomes;
      },
    },
    clock,
    events,
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
    rpc: [createBillingRoutes({ ...ledger, usage, counting, alerts })],
    async start() {
      await store.open();
      await usage.open();
      await alertStore.open();
      running = Promise.all([
        sweeper.run(life.signal),
        counting.run(life.signal),
        alerts.run(life.signal),
      ]);
    },
    notReady: () => (running ? undefined : "billing: the ledger is not open yet"),
    // Answers go on until the host closes its ports; only the questions of our own stop.
    drain: () => stop(),
    [Symbol.asyncDispose]: stop,
  };
}
