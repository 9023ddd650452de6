// Makes the `MediaUpstreams` of `port.ts`, which the media service and its workers use: finds the driver, runs it, and reports
// its end.

import { createSlots } from "#kit/upstream/slots.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { createPools, type Pools } from "../pools/index.ts";
import { lanesOf } from "../pools/lanes.ts";
import type { DriverContext, MediaUpstreamsContext } from "./context.ts";
import { jobDriverOf } from "./drivers.ts";
import { attemptFailed, cancelFailed, createFigures } from "./events.ts";
import { failed, toGenerationError } from "./faults.ts";
import { withInference } from "./inference.ts";
import { createMemory } from "./memory.ts";
import { askedMsOf, outcomeOfBeginning } from "./outcome.ts";
import type { CancelTask, GeneratedOutput, GenerationTask, MediaUpstreams } from "./port.ts";
import { speakAtFirst } from "./speak.ts";

export type { MediaUpstreamsContext } from "./context.ts";

/** Generates media at upstreams of every suitable protocol, `builtin` included. The parts of the context stay their owner's. */
export function createMediaUpstreams(options: MediaUpstreamsContext): MediaUpstreams {
  const context: DriverContext = {
    ...options,
    memory: createMemory(options),
    figures: createFigures(options),
  };
  const slots = createSlots();
  const { pools = createPools(options) } = options;
  return {
    placeToBegin: (upstreams, model, at) => placeToBegin(upstreams, model, at, pools),
    async generate(task) {
      const { signal, upstream, request } = task;
      signal.throwIfAborted();
      const one = beginningOf(task, pools);
      try {
        const call = { provider: upstream.name, model: task.upstreamModel, output: request.kind };
        const made = await withInference(context, call, signal, () => generateAt(context, task));
        one?.ended("answered");
        return made;
      } catch (cause) {
        // An attempt that was called off ends as such, even where another error came up.
        if (signal.aborted) one?.ended("open");
        signal.throwIfAborted();
        const error = toGenerationError(cause);
        one?.ended(outcomeOfBeginning(error), askedMsOf(error));
        const work = { upstream, kind: request.kind, id: task.jobId };
        attemptFailed(context, work, error);
        throw error;
      }
    },
    cancel: (task) => cancelAt(context, task),
    speak: (task) => speakAtFirst(context, { slots, pools }, task),
  };
}

/** The try of a task that is to begin. Undefined where it has begun, because its upstream is no choice any more. */
function beginningOf({ upstream, upstreamModel, resumeId }: GenerationTask, pools: Pools) {
  if (resumeId !== undefined) return undefined;
  const lanes = lanesOf([upstream], { shares: [], upstreamModel });
  return pools.tries(lanes, upstreamModel, "").next();
}

function placeToBegin(
  upstreams: readonly Upstream[],
  upstreamModel: string,
  at: number,
  pools: Pools,
): number {
  const lanes = lanesOf(upstreams, { shares: [], upstreamModel });
  const inTurn = [...lanes.slice(at), ...lanes.slice(0, at)];
  const awake = inTurn.findIndex((lane) => pools.isAwake(lane, upstreamModel));
  return awake < 0 ? at : (at + awake) % lanes.length;
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
