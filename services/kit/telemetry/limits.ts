/** Bounds of telemetry: it may lose data, and may never hold the service up. */
export const telemetryLimits = {
  /** Ended spans that wait to be sent, a few MiB; what comes beyond is dropped. */
  waitingSpans: 4_096,
  /** Spans in one request. */
  spansAtOnce: 512,
  /** Milliseconds in which a stopping process sends what it has; what is not out by then is lost. */
  flushMs: 3_000,
} as const;
