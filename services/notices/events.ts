// Logs and counts attempts to send notices to the operator.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { AttemptEnd, WayName } from "./way.ts";

/** Metrics and logs of alerts to the operator. Never an address, because it may hold the receiver's own secret. */
export interface AlertEvents {
  /** An attempt to tell the operator has ended. */
  attempted(way: WayName, end: AttemptEnd): void;
  /** A step failed and will be repeated. */
  trouble(what: string, error: unknown): void;
}

/** Makes the events of one process. */
export function createAlertEvents({
  log,
  metrics,
}: {
  log: Logger;
  metrics: Metrics;
}): AlertEvents {
  const attempts = metrics.counter(
    "genmesh_operator_alerts_total",
    "Attempts to tell the operator what must be acted on, by way and outcome.",
    ["way", "outcome"],
  );
  return {
    attempted(way, { isDelivered, answer }) {
      attempts.of(way, isDelivered ? "delivered" : "failed").value++;
      if (isDelivered) log.info({ way }, "the operator was told");
      else log.warn({ way, answer }, "the operator could not be told yet");
    },
    trouble: (what, error) => log.debug({ err: error }, what),
  };
}
