import {
  type CancelTask,
  type GeneratedOutput,
  GenerationError,
  type GenerationTask,
  type MediaUpstreams,
} from "../../services/upstreams/media/port.ts";

/** An upstream's treatment of one attempt. */
export type Behaviour = (task: GenerationTask) => Promise<GeneratedOutput[]>;

/** Upstreams that generate the outputs that a test wants, and record their tasks. */
export interface ScriptedUpstream extends MediaUpstreams {
  /** Every attempt so far, in order. */
  readonly tasks: GenerationTask[];
  /** Every task that media canceled, in order. The upstream accepts each cancel. */
  readonly cancelled: CancelTask[];
  /** Names of upstreams that rest. */
  readonly resting: Set<string>;
  /** Sets the behaviour of attempts from now on. Default: {@link succeed}. */
  behave(behaviour: Behaviour): void;
}

export function scriptedUpstream(behaviour: Behaviour = succeed): ScriptedUpstream {
  const tasks: GenerationTask[] = [];
  const cancelled: CancelTask[] = [];
  const resting = new Set<string>();
  let current = behaviour;
  return {
    tasks,
    resting,
    placeToBegin(upstreams, _model, at) {
      const awake = upstreams.findIndex(({ name }) => !resting.has(name));
      return resting.has(upstreams[at]?.name ?? "") && awake >= 0 ? awake : at;
    },
    cancelled,
    behave(next) {
      current = next;
    },
    generate(task) {
      tasks.push(task);
      return current(task);
    },
    async cancel(task) {
      cancelled.push(task);
      return true;
    },
    speak: () => Promise.reject(new GenerationError("failed", "this upstream does not speak")),
  };
}

const mimeTypes = { image: "image/png", video: "video/mp4", music: "audio/mpeg" } as const;

/** Stores the requested number of small outputs. */
export async function succeed(task: GenerationTask): Promise<GeneratedOutput[]> {
  const { request, jobId } = task;
  const count = request.kind === "image" ? request.count : 1;
  const outputs: GeneratedOutput[] = [];
  for (let index = 0; index < count; index++) {
    outputs.push(await storeOne(task, `${jobId} ${index}`));
  }
  return outputs;
}

/** Stores one output. */
export async function storeOne(task: GenerationTask, text: string): Promise<GeneratedOutput> {
  const mimeType = mimeTypes[task.request.kind];
  const stored = await task.store(Buffer.from(text), mimeType);
  const shape = { width: 8, height: 8, durationSeconds: task.request.kind === "image" ? 0 : 6 };
  return { ...stored, mimeType, ...shape };
}

/** Fails with this fault: for good, for the content, or without a known reason. */
export function fail(fault: GenerationError["fault"]): Behaviour {
  return () => Promise.reject(new GenerationError(fault, "scripted"));
}

/** Works until its signal aborts, and then stops with the signal's reason. */
export function hang(task: GenerationTask): Promise<GeneratedOutput[]> {
  return new Promise((_, reject) => {
    const stop = () => reject(task.signal.reason);
    if (task.signal.aborted) stop();
    task.signal.addEventListener("abort", stop, { once: true });
  });
}

/** Waits for a gate, then continues. Stops when its signal aborts. */
export function gated(gate: Promise<unknown>, then: Behaviour = succeed): Behaviour {
  return async (task) => {
    await Promise.race([gate, hang(task)]);
    return then(task);
  };
}
