import type { Clock } from "#kit/clock.ts";
import type { Ids } from "#kit/ids.ts";
import type { Logger } from "#kit/logger.ts";
import type { Metrics } from "#kit/metrics.ts";
import type { Inferences } from "#kit/telemetry/inference.ts";
import type { Telemetry } from "#kit/telemetry/port.ts";

/** What the upstream side of text needs. */
export interface UpstreamsContext {
  log: Logger;
  metrics: Metrics;
  /** Default: nobody listens. */
  telemetry?: Telemetry;
  /** Default: generations are not seen from outside. */
  inferences?: Inferences;
  /** Times in answers, and the pace of builtin text. */
  clock: Clock;
  /** Ids that an upstream left out. */
  ids: Ids;
  /** The value of a variable that a catalog names as `apiKeyEnv`; undefined: it is not set. */
  secrets: (envName: string) => string | undefined;
}
