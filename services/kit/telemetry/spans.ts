import { ConnectError } from "@connectrpc/connect";
import {
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  trace,
} from "@opentelemetry/api";
import { isRefusal, reasonName } from "#kit/base/errors.ts";
import { codeName } from "./codes.ts";
import { type AttributeName, type SpanFamily, spanRules } from "./schema.ts";

/** What a span says of its work. What is undefined is not said. */
export type Attributes = Partial<Record<AttributeName, string | number | boolean | undefined>>;

/** A span to be begun. */
export interface SpanSpec {
  family: SpanFamily;
  name: string;
  attributes?: Attributes;
}

/** W3C trace context, as it travels in headers. */
export type TraceHeaders = { traceparent?: string; tracestate?: string };

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/** Where there is no trace: it says nothing, and no headers are made of it. */
const noSpan = trace.wrapSpanContext({ traceId: "", spanId: "", traceFlags: TraceFlags.NONE });

/** True where the running code is part of a trace that is recorded. Otherwise nothing need be worked out for a span. */
export function isTraced(): boolean {
  return isSampled(trace.getActiveSpan());
}

function isSampled(span: Span | undefined): span is Span {
  return span !== undefined && (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** Begins a span where a trace may begin: the sampler decides whether it is recorded. */
export function beginTrace(spec: SpanSpec, parent: Context): Span {
  const { family, name, attributes = {} } = spec;
  // Asked anew each time, because a process in which tests run starts and ends its telemetry several times.
  const tracer = trace.getTracer("genmesh");
  return tracer.startSpan(name, { kind: kinds[spanRules[family].kind], attributes }, parent);
}

/**
 * Begins a span below the one of `parent`; default: the active one. Work that belongs to no request has no span, and below
 * one that is not recorded there is none either: then the parent itself is answered, whose headers go on.
 */
export function startSpan(spec: SpanSpec, parent: Context = context.active()): Span {
  const above = trace.getSpan(parent);
  return isSampled(above) ? beginTrace(spec, parent) : (above ?? noSpan);
}

/** Runs `work`, and what it goes on with later, with `span` active. */
export function runIn<T>(span: Span, work: () => T): T {
  if (span === noSpan || span === trace.getActiveSpan()) return work();
  return context.with(trace.setSpan(context.active(), span), work);
}

/** Runs `work` inside a span of its own, where the running code is part of a trace that is recorded. */
export function traced<T>(spec: SpanSpec, work: (span: Span) => Promise<T>): Promise<T> {
  // Most are not: then nothing stands between the work and its caller, not even a promise.
  return isTraced() ? recorded(spec, work) : work(noSpan);
}

async function recorded<T>(spec: SpanSpec, work: (span: Span) => Promise<T>): Promise<T> {
  const span = startSpan(spec);
  try {
    return await runIn(span, () => work(span));
  } catch (error) {
    failSpan(span, errorType(error));
    throw error;
  } finally {
    span.end();
  }
}

/** Says that a span's work failed: in one word of ours, a status, or an error's class; never an error's text. */
export function failSpan(span: Span, type: string): void {
  if (!span.isRecording()) return;
  span.setAttributes({ "error.type": type } satisfies Attributes);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/**
 * Ends a span that several events may end, whichever comes first. The SDK itself makes an error, with its stack, of each
 * word to a span that has ended.
 */
export function endSpan(span: Span): void {
  if (span.isRecording()) span.end();
}

/** A class of errors, in a word that holds nothing of what was said. */
export function errorType(error: unknown): string {
  if (isRefusal(error)) return reasonName(error.reason);
  if (error instanceof ConnectError) return codeName(error.code);
  return error instanceof Error && classPattern.test(error.name) ? error.name : "_OTHER";
}

const classPattern = /^[A-Z][A-Za-z]{0,63}$/;

/** Headers that take the active trace elsewhere; none where there is no trace. */
export function traceHeaders(): TraceHeaders {
  const headers: TraceHeaders = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/** Runs `work` as part of the trace that headers name; as it is where they name none. */
export function joinTrace<T>(headers: TraceHeaders, work: () => T): T {
  return context.with(propagation.extract(context.active(), headers), work);
}

/** Fields of every line of the log that is written as part of a trace. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  const found = trace.getActiveSpan()?.spanContext();
  return found && trace.isSpanContextValid(found)
    ? { trace_id: found.traceId, span_id: found.spanId }
    : {};
}
