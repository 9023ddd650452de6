import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { TelemetryConfig } from "./config.ts";
import { noTelemetry, type Telemetry } from "./port.ts";

/** Telemetry of a process, with its metrics. */
export interface ProcessTelemetry extends Telemetry {
  /** Sends what is in `metrics` from now on, beside `/metrics`. */
  exportMetrics(metrics: Metrics): void;
}

/**
 * Begins to collect what the configuration asks for. Where it asks for nothing, nothing of the SDK is loaded. A collector
 * that is away is told once, and changes nothing else.
 */
export async function startTelemetry(
  config: TelemetryConfig | undefined,
  deps: { log: Logger },
): Promise<ProcessTelemetry> {
  if (!config) return { ...noTelemetry, exportMetrics() {} };
  const { openTelemetry } = await import("./otel.ts");
  return openTelemetry(config, deps);
}

/** Fields of every line of the log that is written as part of a trace. */
export function traceFields(telemetry: Telemetry): { trace_id?: string; span_id?: string } {
  const [, trace_id, span_id] = telemetry.active()?.headers?.traceparent.split("-") ?? [];
  return trace_id && span_id ? { trace_id, span_id } : {};
}
