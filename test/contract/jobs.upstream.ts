import {
  type CancelTask,
  type GeneratedOutput,
  GenerationError,
  type GenerationTask,
  type MediaUpstreams,
} from "../../services/upstreams/media/port.ts";

/** What an upstream does with one attempt. */
export type Behaviour = (task: GenerationTask) => Promise<GeneratedOutput[]>;

/** The outside: generates what a test says, and remembers what it was asked. */
export interface ScriptedUpstream extends MediaUpstreams {
  /** Every attempt so far, in order. */
  readonly tasks: GenerationTask[];
  /** Every task that it was told to take back, in order; it takes each. */
  readonly cancelled: CancelTask[];
  /** What attempts do from now on; default: {@link succeed}. */
  behave(behaviour: Behaviour): void;
}

/** Makes one. */
export function scriptedUpstream(behaviour: Behaviour = succeed): ScriptedUpstream {
  const tasks: GenerationTask[] = [];
  const cancelled: CancelTask[] = [];
  let current = behaviour;
  return {
    tasks,
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

/** Stores as many small outputs as were asked for. */
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

/** Fails for good, for its content, or in a way that says nothing. */
export function fail(fault: GenerationError["fault"]): Behaviour {
  return () => Promise.reject(new GenerationError(fault, "scripted"));
}

/** Works until it is told to stop, and then stops as it should. */
export function hang(task: GenerationTask): Promise<GeneratedOutput[]> {
  return new Promise((_, reject) => {
    const stop = () => reject(task.signal.reason);
    if (task.signal.aborted) stop();
    task.signal.addEventListener("abort", stop, { once: true });
  });
}

/** Waits for a gate, then goes on; stops when it is told to. */
export function gated(gate: Promise<unknown>, then: Behaviour = succeed): Behaviour {
  return async (task) => {
    await Promise.race([gate, hang(task)]);
    return then(task);
  };
}
