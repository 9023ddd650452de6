import type { Clock } from "#kit/clock.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";

/** What the catalog service needs. */
export interface CatalogContext {
  /** Path of the catalog file. */
  file: string;
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}
