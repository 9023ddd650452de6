// Starts and ends OpenTelemetry in a process, and bounds what it may hold and how long it may take.

import { context, diag, logs, metrics as meters, propagation, trace } from "@opentelemetry/api";
import {
  type ExportResult,
  ExportResultCode,
  W3CTraceContextPropagator,
} from "@opentelemetry/core";
import { OTLPLogExporter } from "@opentelemetry/exporter-logs-otlp-proto";
import { OTLPMetricExporter } from "@opentelemetry/exporter-metrics-otlp-proto";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchLogRecordProcessor, type LogRecordProcessor } from "@opentelemetry/sdk-logs";
import { type IMetricReader, PeriodicExportingMetricReader } from "@opentelemetry/sdk-metrics";
import { NodeSDK } from "@opentelemetry/sdk-node";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  type SpanProcessor,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "#kit/base/logger.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import type { ExportConfig, SamplerConfig, TelemetryConfig } from "./config-telemetry.ts";
import { otlpMetricsOf } from "./telemetry-metrics.ts";

/** Bounds of telemetry. It may lose data, and must never delay the service. */
const limits = {
  /** Ended spans that wait to be sent, a few MiB. Further ones are dropped. */
  waitingSpans: 4_096,
  /** Spans in one request to the collector. */
  spansAtOnce: 512,
  /** Lines of the log that wait to be sent, a few MiB. Further ones are on standard error alone. */
  waitingLines: 4_096,
  /** Lines in one request to the collector. */
  linesAtOnce: 512,
  /** Milliseconds in which a stopping process sends its data. Unsent data is lost after that. */
  flushMs: 3_000,
} as const;

/**
 * Sends the traces and log of this process, and the metrics in `metrics`, to a collector, until it is disposed of. This is the only file that
 * loads OpenTelemetry's SDK, and it is loaded only where a collector is configured. A collector that is away is logged once, and
 * changes nothing else.
 */
export function startTelemetry(
  config: TelemetryConfig,
  { log, metrics }: { log: Logger; metrics: Metrics },
): AsyncDisposable {
  // OpenTelemetry keeps one SDK a process, and ignores a second one without notice.
  if (propagation.fields().length > 0) throw new Error("this process has its telemetry already");
  const sdk = new NodeSDK({
    resource: resourceFromAttributes({ ...config.resource }),
    autoDetectResources: false,
    textMapPropagator: new W3CTraceContextPropagator(),
    ...(config.traces ? { sampler: samplerOf(config.traces.sampler) } : {}),
    spanProcessors: config.traces ? [spansTo(config.traces, log)] : [],
    metricReaders: config.metrics ? [metricsTo(config.metrics, metrics, log)] : [],
    logRecordProcessors: config.logs ? [linesTo(config.logs, log)] : [],
    // Spans are begun by hand. Patched libraries would record callers' URLs, and add headers to guarded fetches.
    instrumentations: [],
  });
  // The SDK's own messages would show the collector's address on standard output.
  diag.disable();
  sdk.start();
  return {
    async [Symbol.asyncDispose]() {
      await within(limits.flushMs, sdk.shutdown());
      for (const api of [trace, meters, logs, propagation, context]) api.disable();
    },
  };
}

function samplerOf({ ratio, isParentBased }: SamplerConfig): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}

function spansTo(config: ExportConfig, log: Logger): SpanProcessor {
  return new BatchSpanProcessor({
    exporter: watched(new OTLPTraceExporter(collectorOf(config)), "traces", log),
    maxQueueSize: limits.waitingSpans,
    maxExportBatchSize: limits.spansAtOnce,
    scheduledDelayMillis: config.intervalMs,
    exportTimeoutMillis: config.timeoutMs,
  });
}

function linesTo(config: ExportConfig, log: Logger): LogRecordProcessor {
  return new BatchLogRecordProcessor({
    exporter: watched(new OTLPLogExporter(collectorOf(config)), "logs", log),
    maxQueueSize: limits.waitingLines,
    maxExportBatchSize: limits.linesAtOnce,
    scheduledDelayMillis: config.intervalMs,
    exportTimeoutMillis: config.timeoutMs,
  });
}

function metricsTo(config: ExportConfig, metrics: Metrics, log: Logger): IMetricReader {
  return new PeriodicExportingMetricReader({
    exporter: watched(new OTLPMetricExporter(collectorOf(config)), "metrics", log),
    exportIntervalMillis: config.intervalMs,
    exportTimeoutMillis: Math.min(config.timeoutMs, config.intervalMs),
    metricProducers: [otlpMetricsOf(metrics)],
  });
}

function collectorOf({ url, headers, timeoutMs }: ExportConfig) {
  return { url, headers: { ...headers }, timeoutMillis: timeoutMs };
}

/** The sender of one kind of data. */
interface Exporter<T> {
  export(data: T, done: (result: ExportResult) => void): void;
}

/** Logs when sending begins to fail, and when it works again. The SDK would log nothing. */
function watched<T, E extends Exporter<T>>(
  exporter: E & Exporter<T>,
  signal: "traces" | "metrics" | "logs",
  log: Logger,
): E {
  let isAway = false;
  const send = exporter.export.bind(exporter);
  exporter.export = (data, done) => {
    send(data, (result) => {
      const failed = result.code !== ExportResultCode.SUCCESS;
      if (failed && !isAway) log.warn({ signal, err: nameOf(result.error) }, "telemetry is lost");
      if (!failed && isAway) log.info({ signal }, "telemetry is taken again");
      isAway = failed;
      done(result);
    });
  };
  return exporter;
}

/** A class or a code, because the text would name the collector's address. */
function nameOf(error: Error | undefined): string | undefined {
  const { code, name } = (error ?? {}) as { code?: unknown; name?: string };
  return code === undefined ? name : `${name} ${String(code)}`;
}

/** Resolves at the end of the work, failed or not, or after `ms`. Work that goes on after that is ignored. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  work.then(
    () => resolve(),
    () => resolve(),
  );
  await promise;
  clearTimeout(timer);
}
