import { resourceFromAttributes } from "@opentelemetry/resources";
import type { Logger } from "../logger.ts";
import type { Metrics } from "../metrics.ts";
import type { TelemetryConfig } from "./config.ts";
import { telemetryLimits } from "./limits.ts";
import { sendMetrics } from "./otel-metrics.ts";
import { openTracer, type Tracer } from "./otel-traces.ts";
import { noTelemetry } from "./port.ts";
import type { ProcessTelemetry } from "./start.ts";

/** Telemetry by OpenTelemetry's SDK. Loaded only where somebody listens; registers nothing globally. */
export function openTelemetry(config: TelemetryConfig, deps: { log: Logger }): ProcessTelemetry {
  const resource = resourceFromAttributes({ ...config.resource });
  const tracer: Tracer | undefined =
    config.traces && openTracer({ ...deps, config: config.traces, resource });
  const { start, run, join, active } = tracer ?? noTelemetry;
  const senders: { shutdown(): Promise<void> }[] = tracer ? [tracer] : [];
  return {
    isOn: tracer !== undefined,
    start,
    run,
    join,
    active,
    exportMetrics(metrics: Metrics) {
      if (!config.metrics) return;
      senders.push(sendMetrics(metrics, { ...deps, config: config.metrics, resource }));
    },
    async [Symbol.asyncDispose]() {
      await within(
        telemetryLimits.flushMs,
        Promise.allSettled(senders.map((sender) => sender.shutdown())),
      );
    },
  };
}

/** Resolves with the work, or after `ms`; what goes on then is left alone. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, ms);
  await Promise.race([work, promise]);
  clearTimeout(timer);
}
