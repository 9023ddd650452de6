import type { Clock } from "#kit/clock.ts";
import type { Database } from "#kit/database.ts";
import type { Ids } from "#kit/ids.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { Peers } from "#kit/peers.ts";
import type { AlertStore } from "./alert-store.ts";
import { createMongoAlerts } from "./alert-store-mongo.ts";
import { createSqliteAlerts } from "./alert-store-sqlite.ts";
import { withKeyTotals } from "./key-totals.ts";
import type { LedgerStore } from "./store.ts";
import { createMongoLedger, type MongoLedgerOptions } from "./store-mongo.ts";
import { createMongoUsage } from "./store-mongo-usage.ts";
import { createSqliteLedger } from "./store-sqlite.ts";
import { createSqliteUsage } from "./store-sqlite-usage.ts";
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
