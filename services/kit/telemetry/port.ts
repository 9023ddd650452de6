import type { AttributeName, SpanFamily } from "./schema.ts";

/** What a span says of its work. What is undefined is not said. */
export type Attributes = Partial<Record<AttributeName, string | number | boolean | undefined>>;

/** W3C trace context, as it travels in headers. */
export interface TraceHeaders {
  traceparent: string;
  tracestate?: string;
}

/** A span to be begun. */
export interface SpanSpec {
  family: SpanFamily;
  name: string;
  attributes?: Attributes;
  /** Begins a trace where there is no parent; default: then there is no span either. */
  root?: true;
}

/** A piece of work that is seen from outside. Nothing here throws; after its end it says nothing more. */
export interface Span {
  /** False where the trace is not sampled: then nothing need be worked out for it. */
  readonly isRecording: boolean;
  /** For whoever does part of the work elsewhere; undefined where there is no trace. */
  readonly headers: TraceHeaders | undefined;
  set(attributes: Attributes): void;
  /** It failed: in one word of ours, a status, or an error's class; never an error's text. */
  fail(type: string): void;
  end(): void;
}

/** Traces of one process, and the way out for them and for its metrics. */
export interface Telemetry extends AsyncDisposable {
  /** False: nobody listens, and everything here costs next to nothing. */
  readonly isOn: boolean;
  /**
   * Begins a span below the one in `from` (headers that came from elsewhere), or, where `from` is not given, below the
   * active one.
   */
  start(spec: SpanSpec, from?: Partial<TraceHeaders>): Span;
  /** Runs `work`, and whatever it goes on with later, with `span` active. */
  run<T>(span: Span, work: () => T): T;
  /** Runs `work` as part of a trace that was begun elsewhere. */
  join<T>(headers: Partial<TraceHeaders> | undefined, work: () => T): T;
  /** The span that the running code is part of. */
  active(): Span | undefined;
}

/** Where there is no trace. */
export const noSpan: Span = {
  isRecording: false,
  headers: undefined,
  set() {},
  fail() {},
  end() {},
};

/** Where nobody listens. */
export const noTelemetry: Telemetry = {
  isOn: false,
  start: () => noSpan,
  run: (_span, work) => work(),
  join: (_headers, work) => work(),
  active: () => undefined,
  async [Symbol.asyncDispose]() {},
};
