import { Worker } from "node:worker_threads";
import { threadOptions } from "#kit/thread.ts";
import { createCancelFlag, raiseCancelFlag } from "./cancel.ts";
import { RenderError } from "./errors.ts";
import { CANCEL_GRACE_MS, THREAD_HEAP_MIB } from "./limits.ts";
import type { TaskKind, TaskMessage, TaskReply, Tasks } from "./tasks.ts";

/** One task on its way through the pool. Exactly one of `resolve` and `reject` is called, once. */
export type Job = {
  readonly kind: TaskKind;
  readonly request: Tasks[TaskKind]["request"];
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly onProgress: ((percent: number) => void) | undefined;
  readonly resolve: (result: Tasks[TaskKind]["result"]) => void;
  readonly reject: (reason: unknown) => void;
};

/** A thread that does one job at a time. */
export type Thread = {
  /** Does a job to its end, whatever that is; settles the job and then resolves. Never rejects. */
  readonly perform: (job: Job) => Promise<void>;
  /** False once the thread has ended: another must be started. */
  readonly alive: () => boolean;
  readonly end: () => Promise<void>;
};

/** Starts a thread that keeps the process alive only while it works. */
export function startThread(): Thread {
  const options = threadOptions("render", THREAD_HEAP_MIB);
  const worker = new Worker(new URL("./worker.ts", import.meta.url), options);
  worker.unref();
  let alive = true;
  let why = "the thread ended";
  worker.on("error", (error) => {
    if (error instanceof Error) why = error.message;
  });
  const exited = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      alive = false;
      resolve();
    });
  });
  return {
    perform: async (job) => {
      worker.ref();
      await new Performance(worker, job, () => why).ended;
      worker.unref();
    },
    alive: () => alive,
    end: async () => {
      await worker.terminate();
      await exited;
    },
  };
}

let nextId = 1;

/** One job on one thread: watches the answers, the signal, the clock and the thread's end. */
class Performance {
  readonly ended: Promise<void>;
  readonly #worker: Worker;
  readonly #job: Job;
  readonly #id = nextId++;
  readonly #flag = createCancelFlag();
  readonly #limit: NodeJS.Timeout;
  readonly #finish: () => void;
  /** Set once the job must stop: why, and the clock that ends a thread which does not. */
  #stopping: { readonly reason: unknown; readonly grace: NodeJS.Timeout } | undefined;

  constructor(worker: Worker, job: Job, whyExited: () => string) {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#finish = resolve;
    this.#worker = worker;
    this.#job = job;
    this.#onExit = () => this.#settle(() => job.reject(new RenderError("failed", whyExited())));
    const late = new RenderError("timeout", `no ${job.kind} within ${job.timeoutMs} ms`);
    this.#limit = setTimeout(() => this.#stop(late), job.timeoutMs);
    worker.on("message", this.#onReply);
    worker.once("exit", this.#onExit);
    job.signal.addEventListener("abort", this.#onAbort, { once: true });
    if (job.signal.aborted) this.#onAbort();
    const { kind, request } = job;
    try {
      worker.postMessage({ id: this.#id, kind, request, flag: this.#flag } as TaskMessage);
    } catch (error) {
      // The request holds something that cannot be sent to a thread.
      this.#settle(() => job.reject(error));
    }
  }

  readonly #onExit: () => void;
  readonly #onAbort = (): void => this.#stop(this.#job.signal.reason);

  readonly #onReply = (reply: TaskReply): void => {
    if (reply.id !== this.#id) return;
    const { onProgress, resolve, reject } = this.#job;
    if (reply.type === "progress") {
      if (this.#stopping === undefined) onProgress?.(reply.percent);
    } else if (reply.type === "done") this.#settle(() => resolve(reply.result));
    else this.#settle(() => reject(new RenderError("failed", reply.reason)));
  };

  #stop(reason: unknown): void {
    if (this.#stopping !== undefined) return;
    raiseCancelFlag(this.#flag);
    const grace = setTimeout(() => void this.#worker.terminate(), CANCEL_GRACE_MS);
    this.#stopping = { reason, grace };
  }

  #settle(end: () => void): void {
    clearTimeout(this.#limit);
    clearTimeout(this.#stopping?.grace);
    this.#job.signal.removeEventListener("abort", this.#onAbort);
    this.#worker.off("message", this.#onReply);
    this.#worker.off("exit", this.#onExit);
    // A job that was stopped stays stopped, even if it finished at the last moment.
    if (this.#stopping !== undefined) this.#job.reject(this.#stopping.reason);
    else end();
    this.#finish();
  }
}
