// Logs and counts attempts to deliver webhooks.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Webhook } from "./webhook.ts";

/** Metrics and logs of webhooks. Never an address, because it may hold the receiver's own secret. */
export interface WebhookEvents {
  /** An attempt has ended. */
  attempted(webhook: Webhook): void;
  /** So many webhooks of all processes wait for an attempt. */
  waiting(webhooks: number): void;
  /** A step failed and will be repeated. */
  trouble(what: string, error: unknown): void;
}

/** Makes the events of one service. */
export function createWebhookEvents(deps: { log: Logger; metrics: Metrics }): WebhookEvents {
  const { log, metrics } = deps;
  const attempts = metrics.counter(
    "genmesh_media_webhook_attempts_total",
    "Attempts to deliver webhooks, by what they left them in.",
    ["state"],
  );
  const waiting = metrics.gauge(
    "genmesh_media_webhooks_waiting",
    "Webhooks of all processes that are not delivered yet and not given up.",
    [],
  );
  return {
    attempted({ webhookId, accountId, jobId, state, attempts: times, lastStatus, lastError }) {
      attempts.of(state).value++;
      const facts = { webhookId, accountId, jobId, state, attempts: times, lastStatus, lastError };
      if (state === "failed") log.warn(facts, "webhook given up");
      else log.debug(facts, "webhook attempted");
    },
    waiting(webhooks) {
      waiting.of().value = webhooks;
    },
    trouble: (what, error) => log.warn({ err: error }, what),
  };
}
