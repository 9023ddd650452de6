import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";

/** Milliseconds between two lines of the log about the same upstream. It refuses each request in the same way. */
const lineMs = 60_000;

/** Informs operators about their accounts at upstreams. Each process has one, because text and media may use the same upstreams. */
export interface UpstreamAccounts {
  /** An upstream refused a request because the operator's account there has run empty, or is locked. */
  empty(upstream: string, answer: { status?: number | undefined; code?: string | undefined }): void;
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
  const saidAt = new Map<string, number>();
  return {
    empty(upstream, { status, code }) {
      emptyAt.of(upstream).value = clock.now() / 1_000;
      const now = clock.steady();
      if (now - (saidAt.get(upstream) ?? Number.NEGATIVE_INFINITY) < lineMs) return;
      saidAt.set(upstream, now);
      const fields = { upstream, status, ...(code === undefined ? {} : { code }) };
      log.error(fields, "the operator's account at an upstream is empty");
    },
  };
}
