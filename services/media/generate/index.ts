import { createFairShare } from "#kit/fair-share.ts";
import { tracedHttpClient } from "#kit/telemetry/http-client.ts";
import { noTelemetry } from "#kit/telemetry/port.ts";
import { createHttpClient } from "#kit/upstream/client.ts";
import { createSlots } from "#kit/upstream/slots.ts";
import { UpstreamProtocol } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { generateBuiltin } from "./builtin.ts";
import type { DriverContext, MediaUpstreamsContext } from "./context.ts";
import { attemptFailed } from "./events.ts";
import { failed, toGenerationError } from "./faults.ts";
import { generateAtGenmesh } from "./genmesh-jobs.ts";
import { generateLimits } from "./limits.ts";
import { createMemory } from "./memory.ts";
import { generateOpenAiImages } from "./openai-images.ts";
import { generateOpenAiVideo } from "./openai-videos.ts";
import type { GeneratedOutput, GenerationTask, MediaUpstreams } from "./port.ts";
import { seen } from "./seen.ts";
import { speakAtFirst } from "./speak.ts";

export type { MediaUpstreamsContext } from "./context.ts";

/**
 * Generates media at upstreams of every protocol that can, `builtin` included. Nothing is connected yet; disposing closes
 * all connections, and leaves what the context holds to its owner.
 */
export function createMediaUpstreams(options: MediaUpstreamsContext): MediaUpstreams {
  const { telemetry = noTelemetry } = options;
  const context: DriverContext = {
    ...options,
    http: tracedHttpClient(createHttpClient(), telemetry),
    freshHttp: tracedHttpClient(createHttpClient(), telemetry),
    memory: createMemory(options),
    speaking: createFairShare(generateLimits.builtinSpeech, { clock: options.clock }),
  };
  const slots = createSlots();
  return {
    async generate(task) {
      const { signal, upstream, request } = task;
      signal.throwIfAborted();
      try {
        const call = { provider: upstream.name, model: task.upstreamModel, output: request.kind };
        return await seen(context, call, signal, () => generateAt(context, task));
      } catch (cause) {
        // Whatever else went wrong, an attempt that was called off ends as such.
        signal.throwIfAborted();
        const error = toGenerationError(cause);
        const work = { upstream, kind: request.kind, id: task.jobId };
        attemptFailed(context.log, work, error.fault, error);
        throw error;
      }
    },
    speak: (task) => speakAtFirst(context, slots, task),
    async [Symbol.asyncDispose]() {
      await context.http[Symbol.asyncDispose]();
      await context.freshHttp[Symbol.asyncDispose]();
    },
  };
}

function generateAt(context: DriverContext, task: GenerationTask): Promise<GeneratedOutput[]> {
  const { request, upstream } = task;
  switch (upstream.protocol) {
    case UpstreamProtocol.BUILTIN:
      return generateBuiltin(context, task);
    case UpstreamProtocol.GENMESH:
      return generateAtGenmesh(context, task, request);
    case UpstreamProtocol.OPENAI:
      if (request.kind === "image") return generateOpenAiImages(context, task, request);
      if (request.kind === "video") return generateOpenAiVideo(context, task, request);
  }
  throw failed(`the upstream's protocol has no ${request.kind}`);
}
