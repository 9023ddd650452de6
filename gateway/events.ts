// Logs and counts requests of the public edge, without anything that a caller wrote.

import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { Clock } from "#kit/time/clock.ts";
import { anonymousLinesASecond } from "./limits.ts";

/** A request that ended. */
export interface EndedRequest {
  requestId: string;
  /** The caller's own name for it. Absent: it gave none. */
  clientRequestId?: string;
  method: string;
  /** The route's pattern, never the called path, which may hold ids. */
  route: string;
  /** HTTP status, that of the refusal where an answer broke after its beginning. 499 where the caller left before its answer. */
  status: number;
  durationMs: number;
  accountId: string | undefined;
  /** `error.code` of a request that was refused. */
  reason?: string;
  /** The causes of that, by codes: `unavailable < ECONNREFUSED`. A service's own causes are in its log. */
  cause?: string;
}

/** Logs and counts of the edge. Nothing here throws. */
export interface EdgeEvents {
  requestBegan(): void;
  requestEnded(request: EndedRequest): void;
  /** A connection that did not speak HTTP well enough to become a request. */
  connectionRefused(cause: string): void;
  /** A fault of the gateway itself. Callers learn only that there was one. */
  faulted(error: unknown, requestId: string, route: string): void;
  /** Bytes of request bodies held now. */
  bytesInFlight(bytes: number): void;
}

/** Programs call these every few seconds. At the level of requests they would fill most of an idle gateway's log. */
const probes: ReadonlySet<string> = new Set(["/healthz", "/livez", "/readyz"]);

/** Makes the edge's events. */
export function createEdgeEvents(deps: {
  clock: Clock;
  log: Logger;
  metrics: Metrics;
}): EdgeEvents {
  const { clock, log, metrics } = deps;
  const duration = metrics.histogram(
    "genmesh_http_request_duration_seconds",
    "Public requests by route and status, streams to their end.",
    ["method", "route", "status"],
  );
  const active = metrics
    .gauge("genmesh_http_requests_active", "Public requests in flight.", [])
    .of();
  const held = metrics
    .gauge("genmesh_http_body_bytes", "Bytes of request bodies held now.", [])
    .of();
  const refused = metrics.counter(
    "genmesh_http_connections_refused_total",
    "Connections ended because of malformed HTTP, by cause.",
    ["cause"],
  );
  const mayLogAnonymous = createLineBudget(clock, (leftOut) =>
    log.warn({ leftOut }, "requests without a valid key left out of the log"),
  );
  return {
    requestBegan() {
      active.value++;
    },
    requestEnded(request) {
      active.value--;
      const { method, route, status, durationMs } = request;
      duration.of(method, route, String(status)).observe(durationMs / 1_000);
      if (probes.has(route)) log.debug(request, "request");
      else if (request.accountId !== undefined || mayLogAnonymous()) log.info(request, "request");
    },
    connectionRefused(cause) {
      refused.of(cause).value++;
      log.debug({ cause }, "malformed HTTP");
    },
    faulted(error, requestId, route) {
      log.error({ err: error, requestId, route }, "unexpected error");
    },
    bytesInFlight(bytes) {
      held.value = bytes;
    },
  };
}

/**
 * Bounds the log's lines of a kind to a number a second. At the end of a second, one line reports how many were left out. Answers
 * whether the next line may be written.
 */
function createLineBudget(clock: Clock, sayLeftOut: (count: number) => void): () => boolean {
  let written = 0;
  let leftOut = 0;
  let counting = false;
  const count = async () => {
    counting = true;
    await clock.sleep(1_000);
    counting = false;
    if (leftOut > 0) sayLeftOut(leftOut);
    written = 0;
    leftOut = 0;
  };
  return () => {
    if (!counting) void count();
    if (written < anonymousLinesASecond) {
      written++;
      return true;
    }
    leftOut++;
    return false;
  };
}
