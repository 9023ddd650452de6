// Logs and counts what happens to the queue in JetStream.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";

/** Events of a queue that its operator sees. */
export interface JetstreamEvents {
  connected(): void;
  /** The connection broke, or could not be made. Reported once for each time that there was one. */
  away(error?: unknown): void;
  /** The server reported a fault outside of any request. Not reported twice in a row. */
  complaint(error: Error): void;
  /** The stream was made, or its settings were changed. */
  streamWritten(how: "made" | "changed"): void;
  streamTrouble(error: unknown): void;
  published(outcome: "sent" | "refused"): void;
  delivered(topic: string): void;
}

/** Logs and counts. */
export function createJetstreamEvents(deps: { log: Logger; metrics: Metrics }): JetstreamEvents {
  const { log, metrics } = deps;
  const up = metrics.gauge("genmesh_queue_connected", "1 where the queue's server is reached.", []);
  const publications = metrics.counter(
    "genmesh_queue_publications_total",
    "Wake-ups that were published, or refused because the queue is away.",
    ["outcome"],
  );
  const deliveries = metrics.counter(
    "genmesh_queue_deliveries_total",
    "Wake-ups that were received.",
    ["topic"],
  );
  let isAwaySaid = false;
  /** A server that refuses our credentials reports it at every attempt. */
  let lastComplaint = "";
  up.of().value = 0;
  return {
    connected() {
      up.of().value = 1;
      isAwaySaid = false;
      lastComplaint = "";
      log.info("the queue's server is reached");
    },
    away(error) {
      up.of().value = 0;
      if (!isAwaySaid) log.warn({ err: error }, "the queue's server is away");
      isAwaySaid = true;
    },
    complaint(error) {
      if (error.message !== lastComplaint) log.warn({ err: error }, "the queue's server complains");
      lastComplaint = error.message;
    },
    streamWritten: (how) => log.info({ how }, "the queue's stream was written"),
    streamTrouble: (error) => log.warn({ err: error }, "the queue's stream cannot be had"),
    published(outcome) {
      publications.of(outcome).value++;
    },
    delivered(topic) {
      deliveries.of(topic).value++;
    },
  };
}
