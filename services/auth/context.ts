import type { Clock } from "#kit/clock.ts";
import type { Database } from "#kit/database.ts";
import type { Ids } from "#kit/ids.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";

/** What auth needs. */
export interface AuthDeps {
  clock: Clock;
  ids: Ids;
  log: Logger;
  metrics: Metrics;
  database: Database;
}
