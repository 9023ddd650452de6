import { AsyncLocalStorage } from "node:async_hooks";
import {
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  type Tracer as Spans,
  trace,
} from "@opentelemetry/api";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import type { Resource } from "@opentelemetry/resources";
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  type Sampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from "@opentelemetry/sdk-trace";
import type { Logger } from "../logger.ts";
import type { SamplerConfig, TelemetryConfig } from "./config.ts";
import { telemetryLimits } from "./limits.ts";
import { OwnSpan, RemoteSpan, SilentSpan, type TracedSpan } from "./otel-spans.ts";
import { watchedExporter } from "./otel-watched.ts";
import { noSpan, type Span, type Telemetry, type TraceHeaders } from "./port.ts";
import { type SpanKind as Kind, spanRules } from "./schema.ts";

/** Traces of a process. */
export interface Tracer extends Pick<Telemetry, "start" | "run" | "join" | "active"> {
  /** Sends what has ended. May reject, and may take long. */
  shutdown(): Promise<void>;
}

/** What a tracer is made of. */
export interface TracerOptions {
  config: NonNullable<TelemetryConfig["traces"]>;
  resource: Resource;
  log: Logger;
}

const kinds: Readonly<Record<Kind, SpanKind>> = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

/** Makes a tracer, with a context of its own. */
export function openTracer({ config, resource, log }: TracerOptions): Tracer {
  const provider = createProvider({ config, resource, log });
  const spans = provider.getTracer("genmesh");
  const running = new AsyncLocalStorage<TracedSpan>();
  return {
    start(spec, from) {
      const parent = from ? parentOf(from, running.getStore()) : running.getStore();
      if (!parent && !spec.root) return noSpan;
      // What is below a silent span is silent as well, and needs no span to be so.
      if (parent?.isSilent) return parent;
      return begin(spans, spec, parent?.context ?? ROOT_CONTEXT);
    },
    run: (span, work) =>
      isTraced(span) && span !== running.getStore() ? running.run(span, work) : work(),
    join(headers, work) {
      const remote = headers && remoteSpan(headers);
      return remote ? running.run(remote, work) : work();
    },
    active: () => running.getStore(),
    shutdown: () => provider.shutdown(),
  };
}

function begin(spans: Spans, spec: Parameters<Telemetry["start"]>[0], below: Context): Span {
  const { name, family, attributes = {} } = spec;
  const options = { kind: kinds[spanRules[family].kind], attributes };
  const span = spans.startSpan(name, options, below);
  const context = trace.setSpan(ROOT_CONTEXT, span);
  return span.isRecording() ? new OwnSpan(span, context) : new SilentSpan(span, context);
}

function isTraced(span: Span): span is TracedSpan {
  return "context" in span;
}

/** The span that headers name: in one process that is mostly the active one. */
function parentOf(
  from: Partial<TraceHeaders>,
  active: TracedSpan | undefined,
): TracedSpan | undefined {
  if (from.traceparent === undefined) return undefined;
  return active?.headers.traceparent === from.traceparent ? active : remoteSpan(from);
}

const propagator = new W3CTraceContextPropagator();
const getter = {
  keys: (carrier: Partial<TraceHeaders>) => Object.keys(carrier),
  get: (carrier: Partial<TraceHeaders>, name: string) => carrier[name as keyof TraceHeaders],
};

/** Undefined where they make no sense. */
function remoteSpan(headers: Partial<TraceHeaders>): TracedSpan | undefined {
  const context = propagator.extract(ROOT_CONTEXT, headers, getter);
  const found = trace.getSpanContext(context);
  return found && new RemoteSpan(found, context);
}

function createProvider({ config, resource, log }: TracerOptions): TracerProvider {
  const { url, headers, timeoutMs, intervalMs } = config;
  const exporter = new OTLPTraceExporter({
    url,
    headers: { ...headers },
    timeoutMillis: timeoutMs,
  });
  return new TracerProvider({
    resource,
    sampler: samplerOf(config.sampler),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter: watchedExporter(exporter, "traces", log),
        maxQueueSize: telemetryLimits.waitingSpans,
        maxExportBatchSize: telemetryLimits.spansAtOnce,
        scheduledDelayMillis: intervalMs,
        exportTimeoutMillis: timeoutMs,
      }),
    ],
  });
}

function samplerOf({ ratio, isParentBased }: SamplerConfig): Sampler {
  const root = new TraceIdRatioBasedSampler(ratio);
  return isParentBased ? new ParentBasedSampler({ root }) : root;
}
