import { performance } from "node:perf_hooks";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Metrics } from "#kit/base/metrics.ts";
import { staged } from "#kit/stream/stages.ts";
import { type Attributes, failSpan, runIn, startSpan } from "./spans.ts";

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

/** Usage that an upstream reported. */
export interface InferenceUsage {
  inputTokens: number;
  cachedInputTokens: number;
  outputTokens: number;
}

/** A generation that is under way. Nothing here throws. */
export interface Inference {
  /** Is it part of a trace that is recorded? */
  readonly isTraced: boolean;
  /** Runs `work` as part of it. */
  run<T>(work: () => T): T;
  /** The first piece of a stream has come. */
  firstChunk(): void;
  used(usage: InferenceUsage): void;
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

function workOf({ operation, output }: InferenceCall): Work {
  if (operation !== "generate_content") return "text";
  return output === "speech" ? "speech" : "jobs";
}

/** The error name for an aborted generation. A time-out counts as its upstream's fault. */
export function errorOfAbort({ reason }: Pick<AbortSignal, "reason">): string {
  return isRefusal(reason, ErrorReason.UPSTREAM_TIMEOUT) ? "timeout" : "cancelled";
}

/** Seconds: the buckets of the conventions, and further ones up to the longest jobs. */
const secondsBuckets = Array.from({ length: 18 }, (_, i) => 0.01 * 2 ** i);

/** Makes it. Each process has one, because its metrics have one registry. */
export function createInferences({ metrics }: { metrics: Metrics }): Inferences {
  const count = countersOf(metrics);
  return {
    begin(call) {
      const { operation, provider, model } = call;
      const begunMs = performance.now();
      const seconds = () => (performance.now() - begunMs) / 1_000;
      const active = count.active.of(provider, workOf(call));
      active.value++;
      const span = startSpan(specOf(call));
      let hasBegun = false;
      let isOver = false;
      return {
        isTraced: span.isRecording(),
        run: (work) => runIn(span, work),
        firstChunk() {
          if (hasBegun || isOver) return;
          hasBegun = true;
          count.firstChunk.of(operation, provider, model).observe(seconds());
          span.setAttributes({
            "gen_ai.response.time_to_first_chunk": seconds(),
          } satisfies Attributes);
        },
        used(usage) {
          if (isOver || !isBelievable(usage)) return;
          count.input.of(operation, provider, model).value += usage.inputTokens;
          count.cachedInput.of(operation, provider, model).value += usage.cachedInputTokens;
          count.output.of(operation, provider, model).value += usage.outputTokens;
          span.setAttributes({
            "gen_ai.usage.input_tokens": usage.inputTokens,
            "gen_ai.usage.cache_read.input_tokens": usage.cachedInputTokens,
            "gen_ai.usage.output_tokens": usage.outputTokens,
          } satisfies Attributes);
        },
        end(error) {
          if (isOver) return;
          isOver = true;
          active.value--;
          count.duration.of(operation, provider, model, error ?? "").observe(seconds());
          if (error !== undefined) failSpan(span, error);
          span.end();
        },
      };
    },
  };
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
      inference.firstChunk();
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
  return Object.values(usage).every((count) => Number.isFinite(count) && count >= 0);
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

function countersOf(metrics: Metrics) {
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
