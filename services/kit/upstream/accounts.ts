// Tells an operator, by log and metric, that an upstream's account is empty or its key is refused.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";

/** Milliseconds between two equal lines of the log about an upstream. It refuses each request in the same way. */
const lineMs = 60_000;

/** Informs operators about their accounts at upstreams. Each process has one, because text and media may use the same upstreams. */
export interface UpstreamAccounts {
  /** An upstream refused a request because the operator's account there has run empty, or is locked. */
  empty(upstream: string, answer: { status?: number | undefined; code?: string | undefined }): void;
  /** An upstream did not accept a key, or there is none. `key`: the variable or the file that holds it. Never the key itself. */
  keyRefused(upstream: string, key: string): void;
}

/** Makes the recorder of a process. */
export function createUpstreamAccounts(deps: {
  log: Logger;
  metrics: Metrics;
  clock: Clock;
}): UpstreamAccounts {
  const { log, metrics, clock } = deps;
  // A time, and not a count: Prometheus sees no increase of a counter that begins with its first event.
  const emptyAt = metrics.gauge(
    "genmesh_upstream_account_empty_timestamp_seconds",
    "When an upstream last refused a request because the operator's account there is empty.",
    ["upstream"],
  );
  const refusedAt = metrics.gauge(
    "genmesh_upstream_key_refused_timestamp_seconds",
    "When an upstream last did not accept a key, by the variable or the file that holds the key.",
    ["upstream", "key"],
  );
  const saidAt = new Map<string, number>();
  const say = (fields: { upstream: string; [name: string]: unknown }, message: string) => {
    const now = clock.steady();
    const about = `${fields.upstream} ${message}`;
    if (now - (saidAt.get(about) ?? Number.NEGATIVE_INFINITY) < lineMs) return;
    saidAt.set(about, now);
    log.error(fields, message);
  };
  return {
    empty(upstream, { status, code }) {
      emptyAt.of(upstream).value = clock.now() / 1_000;
      const fields = { upstream, status, ...(code === undefined ? {} : { code }) };
      say(fields, "the operator's account at an upstream is empty");
    },
    keyRefused(upstream, key) {
      refusedAt.of(upstream, key).value = clock.now() / 1_000;
      say({ upstream, key }, "an upstream does not accept a key");
    },
  };
}
