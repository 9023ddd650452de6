// Begins, joins and ends spans. Only names of `schema.ts` may be used. Where nothing is recorded, work costs nothing extra.

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

/** Attributes of a span. Undefined ones are left out. */
export type Attributes = Partial<
  Record<AttributeName, string | number | boolean | string[] | undefined>
>;

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

/** Used where there is no trace. It records nothing, and gives no headers. */
export const noSpan = trace.wrapSpanContext({
  traceId: "",
  spanId: "",
  traceFlags: TraceFlags.NONE,
});

/** True where the running code is part of a trace that is recorded. Otherwise skip work that only a span needs. */
export function isTraced(): boolean {
  return isSampled(trace.getActiveSpan());
}

function isSampled(span: Span | undefined): span is Span {
  return span !== undefined && (span.spanContext().traceFlags & TraceFlags.SAMPLED) !== 0;
}

/** Begins a span where a trace may begin. The sampler decides whether it is recorded. */
export function beginTrace(spec: SpanSpec, parent: Context): Span {
  const { family, name, attributes = {} } = spec;
  // Looked up each time, because a process in which tests run starts and ends its telemetry several times.
  const tracer = trace.getTracer("genmesh");
  return tracer.startSpan(name, { kind: kinds[spanRules[family].kind], attributes }, parent);
}

/**
 * Begins a span below that of `parent`. Default: the active one. Work that belongs to no request has no span. Below a span that is not
 * recorded there is none either: then the parent itself is returned, and its headers are sent on.
 */
export function startSpan(spec: SpanSpec, parent: Context = context.active()): Span {
  const above = trace.getSpan(parent);
  return isSampled(above) ? beginTrace(spec, parent) : (above ?? noSpan);
}

/** Runs `work`, and everything that it continues with later, with `span` active. */
export function runIn<T>(span: Span, work: () => T): T {
  if (span === noSpan || span === trace.getActiveSpan()) return work();
  return context.with(trace.setSpan(context.active(), span), work);
}

/** Runs `work` inside a span of its own, where the running code is part of a trace that is recorded. */
export function traced<T>(spec: SpanSpec, work: (span: Span) => Promise<T>): Promise<T> {
  // Most calls are not traced. Then nothing is added to the work, not even a promise.
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

/** Adds attributes to the active span. Nothing where there is no trace. */
export function noteOnSpan(attributes: Attributes): void {
  trace.getActiveSpan()?.setAttributes(attributes);
}

/** Marks a span's work as failed, with a word of this code, a status, or an error's class. Never with an error's text. */
export function failSpan(span: Span, type: string): void {
  if (!span.isRecording()) return;
  span.setAttributes({ "error.type": type } satisfies Attributes);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

/**
 * Ends a span that several events may end. The first one counts. The SDK makes an error with a stack for each call on a span that has
 * ended.
 */
export function endSpan(span: Span): void {
  if (span.isRecording()) span.end();
}

/** The class of an error, as a word that holds nothing of its text. */
export function errorType(error: unknown): string {
  if (isRefusal(error)) return reasonName(error.reason);
  if (error instanceof ConnectError) return codeName(error.code);
  return error instanceof Error && classPattern.test(error.name) ? error.name : "_OTHER";
}

const classPattern = /^[A-Z][A-Za-z]{0,63}$/;

/** Headers that carry the active trace. None where there is no trace. */
export function traceHeaders(): TraceHeaders {
  const headers: TraceHeaders = {};
  propagation.inject(context.active(), headers);
  return headers;
}

/** Runs `work` as part of the trace that the headers name, and outside of any trace where they name none. */
export function joinTrace<T>(headers: TraceHeaders, work: () => T): T {
  return context.with(propagation.extract(context.active(), headers), work);
}

/** Fields for every line of the log that is written as part of a trace. */
export function traceFields(): { trace_id?: string; span_id?: string } {
  const found = trace.getActiveSpan()?.spanContext();
  return found && trace.isSpanContextValid(found)
    ? { trace_id: found.traceId, span_id: found.spanId }
    : {};
}
