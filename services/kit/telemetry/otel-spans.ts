import {
  type Context,
  type SpanContext,
  type Span as SpanOfSdk,
  SpanStatusCode,
} from "@opentelemetry/api";
import type { Attributes, Span, TraceHeaders } from "./port.ts";

/** A span with what the SDK knows it by. */
export interface TracedSpan extends Span {
  readonly headers: TraceHeaders;
  readonly context: Context;
  /** Not sampled, and begun here: nothing below it is recorded either. */
  readonly isSilent: boolean;
}

/** W3C's words for a span. */
function headersOf({ traceId, spanId, traceFlags, traceState }: SpanContext): TraceHeaders {
  const flags = traceFlags.toString(16).padStart(2, "0");
  const traceparent = `00-${traceId}-${spanId}-${flags}`;
  const tracestate = traceState?.serialize();
  return tracestate ? { traceparent, tracestate } : { traceparent };
}

/** A recorded span. */
export class OwnSpan implements TracedSpan {
  readonly isRecording = true;
  readonly isSilent = false;
  readonly context: Context;
  readonly #span: SpanOfSdk;
  #headers: TraceHeaders | undefined;
  #isOver = false;

  constructor(span: SpanOfSdk, context: Context) {
    this.#span = span;
    this.context = context;
  }

  get headers(): TraceHeaders {
    this.#headers ??= headersOf(this.#span.spanContext());
    return this.#headers;
  }

  set(attributes: Attributes): void {
    if (!this.#isOver) this.#span.setAttributes(attributes);
  }

  fail(type: string): void {
    if (this.#isOver) return;
    this.#span.setAttributes({ "error.type": type } satisfies Attributes);
    this.#span.setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#span.end();
  }
}

/** A span of a trace that is not sampled. */
export class SilentSpan implements TracedSpan {
  readonly isRecording: boolean = false;
  readonly isSilent: boolean = true;
  readonly context: Context;
  readonly #span: SpanOfSdk;
  #headers: TraceHeaders | undefined;

  constructor(span: SpanOfSdk, context: Context) {
    this.#span = span;
    this.context = context;
  }

  get headers(): TraceHeaders {
    this.#headers ??= headersOf(this.#span.spanContext());
    return this.#headers;
  }

  set(): void {}
  fail(): void {}
  end(): void {}
}

/** A span of another process, or of another time: others may stand below it. */
export class RemoteSpan implements TracedSpan {
  readonly isRecording: boolean;
  readonly isSilent = false;
  readonly context: Context;
  readonly headers: TraceHeaders;

  constructor(span: SpanContext, context: Context) {
    this.context = context;
    this.headers = headersOf(span);
    // Whether it is will be decided for each span below it.
    this.isRecording = true;
  }

  set(): void {}
  fail(): void {}
  end(): void {}
}
