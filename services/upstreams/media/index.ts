import { createSlots } from "#kit/upstream/slots.ts";
import type { DriverContext, MediaUpstreamsContext } from "./context.ts";
import { jobDriverOf } from "./drivers.ts";
import { attemptFailed, cancelFailed } from "./events.ts";
import { failed, toGenerationError } from "./faults.ts";
import { withInference } from "./inference.ts";
import { createMemory } from "./memory.ts";
import type { CancelTask, GeneratedOutput, GenerationTask, MediaUpstreams } from "./port.ts";
import { speakAtFirst } from "./speak.ts";

export type { MediaUpstreamsContext } from "./context.ts";

/** Generates media at upstreams of every suitable protocol, `builtin` included. The parts of the context stay their owner's. */
export function createMediaUpstreams(options: MediaUpstreamsContext): MediaUpstreams {
  const context: DriverContext = {
    ...options,
    memory: createMemory(options),
  };
  const slots = createSlots();
  return {
    async generate(task) {
      const { signal, upstream, request } = task;
      signal.throwIfAborted();
      try {
        const call = { provider: upstream.name, model: task.upstreamModel, output: request.kind };
        return await withInference(context, call, signal, () => generateAt(context, task));
      } catch (cause) {
        // An attempt that was called off ends as such, even where another error came up.
        signal.throwIfAborted();
        const error = toGenerationError(cause);
        const work = { upstream, kind: request.kind, id: task.jobId };
        attemptFailed(context, work, error);
        throw error;
      }
    },
    cancel: (task) => cancelAt(context, task),
    speak: (task) => speakAtFirst(context, slots, task),
  };
}

function generateAt(context: DriverContext, task: GenerationTask): Promise<GeneratedOutput[]> {
  const { request, upstream } = task;
  const driver = jobDriverOf(upstream, request.kind);
  if (!driver) throw failed(`the upstream's protocol has no ${request.kind}`);
  return driver.generate(context, task, request);
}

async function cancelAt(context: DriverContext, task: CancelTask): Promise<boolean> {
  const cancel = jobDriverOf(task.upstream, task.kind)?.cancel;
  if (!cancel) return false;
  try {
    return await cancel(context, task);
  } catch (cause) {
    task.signal.throwIfAborted();
    const work = { upstream: task.upstream, kind: task.kind, id: task.jobId };
    cancelFailed(context.log, work, toGenerationError(cause, true));
    return false;
  }
}
