// Measures each generation at an upstream: a span and metrics, with tokens and times. The drivers of text and media report to it.

import { performance } from "node:perf_hooks";
import type { Span } from "@opentelemetry/api";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { staged } from "#kit/stream/stages.ts";
import { type Attributes, failSpan, isTraced, noSpan, runIn, startSpan } from "./spans.ts";

/** One generation at one upstream. */
export interface InferenceCall {
  operation: "chat" | "compact" | "embeddings" | "transcriptions" | "generate_content";
  /** The upstream's name in the catalog. */
  provider: string;
  /** The model's name in the catalog. */
  model: string;
  /** The kind of output, where that is not text. */
  output?: "image" | "video" | "music" | "speech";
  isStream?: boolean;
}

/** Facts of a generation that only its span has. */
export interface InferenceFacts {
  /** The most tokens of output that the upstream may make. Undefined: its own maximum. */
  maxTokens?: number | undefined;
  /** The id of the answer, as its caller sees it. */
  responseId?: string;
  /** The model's name at the upstream. */
  upstreamModel?: string;
  /** The `x-request-id` of the caller's answer. */
  requestId?: string;
  /** The reason why the answer ended, in OpenAI's words. */
  finishReason?: string;
}

/** Usage that an upstream reported. */
export interface InferenceUsage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
  /** A subset of the output tokens. Absent: it was not reported. */
  reasoningTokens?: number;
  /** `cacheWrite`: input tokens that were written to a cache. */
  details?: { cacheWrite?: number };
}

/** A generation that is under way. Nothing here throws. */
export interface Inference {
  /** Is it part of a trace that is recorded? */
  readonly isTraced: boolean;
  /** Runs `work` as part of it. */
  run<T>(work: () => T): T;
  /** A piece of a stream has come. */
  chunk(): void;
  used(usage: InferenceUsage): void;
  /** Adds facts to its span. Skip the call where {@link isTraced} is false. */
  note(facts: InferenceFacts): void;
  /** Called once. `error`: a word for the fault. */
  end(error?: string): void;
}

/** Sees the generations of a process. */
export interface Inferences {
  begin(call: InferenceCall): Inference;
}

/**
 * Ends that are no fault of the upstream: it answered, the caller left, or the caller sent a request that the upstream refuses. The
 * alert has the same list.
 */
export const callersErrors: ReadonlySet<string> = new Set([
  ...["", "cancelled", "content_policy", "context_length", "invalid_request", "policy"],
]);

/** Kinds of work. The catalog gives each kind its own number of places at an upstream. */
type Work = "text" | "speech" | "jobs";

/** The error name for an aborted generation. A time-out counts as its upstream's fault. */
export function errorOfAbort({ reason }: Pick<AbortSignal, "reason">): string {
  return isRefusal(reason, ErrorReason.UPSTREAM_TIMEOUT) ? "timeout" : "cancelled";
}

/** Seconds: the buckets of the conventions, and further ones up to the longest jobs. */
const secondsBuckets = Array.from({ length: 18 }, (_, i) => 0.01 * 2 ** i);

/** Seconds: the buckets of the conventions for the time between two chunks. */
const chunkBuckets = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5];

interface InferencesOptions {
  metrics: Metrics;
  /** Is the time between two chunks observed? It is a call for each chunk. Default: no. */
  timesChunks?: boolean;
}

/** Makes it. Each process has one, because its metrics have one registry. */
export function createInferences({ metrics, timesChunks = false }: InferencesOptions): Inferences {
  const count = countersOf(metrics, timesChunks);
  return { begin: (call) => new Running(call, count) };
}

class Running implements Inference {
  readonly isTraced: boolean;
  readonly #call: InferenceCall;
  readonly #count: Counters;
  readonly #active: { value: number };
  readonly #span: Span;
  readonly #begunMs = performance.now();
  #chunkMs = 0;
  #hasBegun = false;
  #isOver = false;

  constructor(call: InferenceCall, count: Counters) {
    this.#call = call;
    this.#count = count;
    const ofMedia: Work = call.output === "speech" ? "speech" : "jobs";
    const work: Work = call.operation === "generate_content" ? ofMedia : "text";
    this.#active = count.active.of(call.provider, work);
    this.#active.value++;
    this.#span = isTraced() ? startSpan(specOf(call)) : noSpan;
    this.isTraced = this.#span.isRecording();
  }

  readonly run = <T>(work: () => T): T => (this.isTraced ? runIn(this.#span, work) : work());

  chunk(): void {
    const { operation, provider, model } = this.#call;
    const { outputChunk, firstChunk } = this.#count;
    if (outputChunk && !this.#isOver) {
      const beforeMs = this.#chunkMs;
      this.#chunkMs = performance.now();
      const waitedS = (this.#chunkMs - beforeMs) / 1_000;
      if (this.#hasBegun) outputChunk.of(operation, provider, model).observe(waitedS);
    }
    if (this.#hasBegun || this.#isOver) return;
    this.#hasBegun = true;
    const seconds = this.#seconds();
    firstChunk.of(operation, provider, model).observe(seconds);
    if (!this.isTraced) return;
    this.#span.setAttributes({
      "gen_ai.response.time_to_first_chunk": seconds,
    } satisfies Attributes);
  }

  used(usage: InferenceUsage): void {
    if (this.#isOver || !isBelievable(usage)) return;
    const { operation, provider, model } = this.#call;
    const count = this.#count;
    count.input.of(operation, provider, model).value += usage.inputTokens;
    count.cachedInput.of(operation, provider, model).value += usage.cachedInputTokens;
    count.output.of(operation, provider, model).value += usage.outputTokens;
    const { reasoningTokens, details } = usage;
    if (reasoningTokens) {
      count.reasoning.of(operation, provider, model).value += reasoningTokens;
    }
    if (details?.cacheWrite) {
      count.cacheWrite.of(operation, provider, model).value += details.cacheWrite;
    }
    if (!this.isTraced) return;
    this.#span.setAttributes({
      "gen_ai.usage.input_tokens": usage.inputTokens,
      "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
      "gen_ai.usage.cache_write.input_tokens": details?.cacheWrite,
      "gen_ai.usage.output_tokens": usage.outputTokens,
      "gen_ai.usage.reasoning.output_tokens": reasoningTokens,
    } satisfies Attributes);
  }

  note(facts: InferenceFacts): void {
    this.#span.setAttributes(attributesOf(facts));
  }

  end(error?: string): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#active.value--;
    const { operation, provider, model } = this.#call;
    this.#count.duration.of(operation, provider, model, error ?? "").observe(this.#seconds());
    if (error !== undefined) failSpan(this.#span, error);
    this.#span.end();
  }

  #seconds(): number {
    return (performance.now() - this.#begunMs) / 1_000;
  }
}

/** The pieces of a stream, with notes of when the first and the last one came. */
export function followedStream<T>(
  pieces: AsyncIterable<T>,
  inference: Inference,
  note: (piece: T) => void,
): AsyncIterable<T> {
  return staged(pieces, {
    ...(inference.isTraced ? { enter: inference.run } : {}),
    pass(piece) {
      inference.chunk();
      note(piece);
      return piece;
    },
    end: () => inference.end(),
    fail(error) {
      inference.end("cancelled");
      return error;
    },
    leave: () => inference.end(),
  });
}

/** A counter takes no negative number, and an upstream may report anything. */
function isBelievable(usage: InferenceUsage): boolean {
  const { inputTokens, cachedInputTokens, outputTokens, reasoningTokens = 0, details } = usage;
  const written = details?.cacheWrite ?? 0;
  const least = Math.min(inputTokens, cachedInputTokens, outputTokens, reasoningTokens, written);
  const sum = inputTokens + cachedInputTokens + outputTokens + reasoningTokens + written;
  return least >= 0 && Number.isFinite(sum);
}

function attributesOf(facts: InferenceFacts): Attributes {
  const { maxTokens, responseId, upstreamModel, requestId, finishReason } = facts;
  return {
    "gen_ai.request.max_tokens": maxTokens,
    "gen_ai.response.id": responseId,
    "gen_ai.response.model": upstreamModel,
    "gen_ai.response.finish_reasons": finishReason ? [finishReason] : undefined,
    "genmesh.request.id": requestId,
  };
}

function specOf({ operation, provider, model, output, isStream }: InferenceCall) {
  return {
    family: "gen_ai.client.inference",
    name: `${operation} ${model}`,
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.provider.name": provider,
      "gen_ai.request.model": model,
      "gen_ai.output.type": output ?? "text",
      "gen_ai.request.stream": isStream,
    },
  } as const;
}

type Counters = ReturnType<typeof countersOf>;

function countersOf(metrics: Metrics, timesChunks: boolean) {
  const labels = ["operation", "provider", "model"] as const;
  return {
    duration: metrics.histogram(
      "genmesh_inference_duration_seconds",
      "Generations at upstreams, streams to their end.",
      [...labels, "error"],
      secondsBuckets,
    ),
    active: metrics.gauge(
      "genmesh_inference_active",
      "Generations that are under way at upstreams.",
      ["provider", "work"],
    ),
    firstChunk: metrics.histogram(
      "genmesh_inference_first_chunk_seconds",
      "From sending a request to the first piece of its stream.",
      labels,
      secondsBuckets,
    ),
    outputChunk: timesChunks
      ? metrics.histogram(
          "genmesh_inference_output_chunk_seconds",
          "From one piece of a stream to the next. Only where metrics go to a collector.",
          labels,
          chunkBuckets,
        )
      : undefined,
    cacheWrite: metrics.counter(
      "genmesh_inference_cache_write_input_tokens_total",
      "Input tokens, of those reported, that upstreams wrote to a cache.",
      labels,
    ),
    reasoning: metrics.counter(
      "genmesh_inference_reasoning_output_tokens_total",
      "Output tokens, of those reported, that were reasoning.",
      labels,
    ),
    input: metrics.counter(
      "genmesh_inference_input_tokens_total",
      "Input tokens that upstreams reported.",
      labels,
    ),
    cachedInput: metrics.counter(
      "genmesh_inference_cached_input_tokens_total",
      "Input tokens, of those reported, that upstreams read from a cache.",
      labels,
    ),
    output: metrics.counter(
      "genmesh_inference_output_tokens_total",
      "Output tokens that upstreams reported.",
      labels,
    ),
  };
}
