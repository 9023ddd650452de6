import type { Clock } from "#kit/clock.ts";
import type { Database } from "#kit/database.ts";
import type { Ids } from "#kit/ids.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { Peers } from "#kit/peers.ts";
import type { LedgerStore } from "./store.ts";
import { createMongoLedger, type MongoLedgerOptions } from "./store-mongo.ts";
import { createSqliteLedger } from "./store-sqlite.ts";

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
      return createSqliteLedger(database.sqlite);
    case "mongodb":
      return createMongoLedger(database.mongo, options);
  }
}
