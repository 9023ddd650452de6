import { RenderError } from "./errors.ts";
import { IDLE_THREAD_MS, MAX_THREADS, MAX_WAITING_TASKS } from "./limits.ts";
import type { TaskKind, Tasks } from "./tasks.ts";
import { type Job, startThread, type Thread } from "./thread.ts";

/** How one task is run. */
export type RunOptions = {
  /** Counts from the start of the work, not from the request. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((percent: number) => void) | undefined;
};

type Slot = { thread: Thread | undefined; busy: boolean; idle: NodeJS.Timeout | undefined };

/** A few threads that share a queue. Disposing ends what runs and refuses what comes. */
export class Pool implements AsyncDisposable {
  readonly #slots: readonly Slot[];
  readonly #waiting: Job[] = [];
  readonly #working = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  /** A pool of at most `threads` threads; each starts when it is first needed. */
  constructor(threads: number) {
    if (!Number.isInteger(threads) || threads < 1 || threads > MAX_THREADS) {
      throw new RangeError(`threads must be 1 to ${MAX_THREADS}`);
    }
    this.#slots = Array.from({ length: threads }, () => ({
      thread: undefined,
      busy: false,
      idle: undefined,
    }));
  }

  /**
   * Does a task on the next free thread, first come, first served. Rejects with the signal's reason
   * when it is aborted (a running task has stopped by then), and with `RenderError` otherwise.
   */
  async run<K extends TaskKind>(
    kind: K,
    request: Tasks[K]["request"],
    options: RunOptions,
  ): Promise<Tasks[K]["result"]> {
    const { timeoutMs, onProgress } = options;
    const closed = this.#closing.signal;
    const signal = options.signal ? AbortSignal.any([closed, options.signal]) : closed;
    signal.throwIfAborted();
    if (this.#waiting.length >= MAX_WAITING_TASKS) {
      throw new RenderError("busy", "too many renderings wait");
    }
    return await new Promise<Tasks[K]["result"]>((resolve, reject) => {
      this.#enqueue({ kind, request, timeoutMs, signal, onProgress, resolve, reject });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new RenderError("closed", "the renderer has been closed"));
    await Promise.all(this.#working);
    for (const slot of this.#slots) clearTimeout(slot.idle);
    await Promise.all(this.#slots.map(({ thread }) => thread?.end()));
  }

  #enqueue(job: Job): void {
    const leave = (): void => {
      const at = this.#waiting.indexOf(job);
      if (at < 0) return;
      this.#waiting.splice(at, 1);
      job.reject(job.signal.reason);
    };
    job.signal.addEventListener("abort", leave, { once: true });
    this.#waiting.push(job);
    this.#startNext();
  }

  #startNext(): void {
    const slot = this.#slots.find(({ busy }) => !busy);
    const job = slot && this.#waiting.shift();
    if (slot === undefined || job === undefined) return;
    const work = this.#occupy(slot, job).finally(() => {
      this.#working.delete(work);
      this.#startNext();
    });
    this.#working.add(work);
  }

  async #occupy(slot: Slot, job: Job): Promise<void> {
    slot.busy = true;
    clearTimeout(slot.idle);
    if (!slot.thread?.alive()) slot.thread = startThread();
    await slot.thread.perform(job);
    slot.busy = false;
    // Memory that a large video needed goes back once the thread has had nothing to do for a while.
    slot.idle = setTimeout(() => {
      void slot.thread?.end();
      slot.thread = undefined;
    }, IDLE_THREAD_MS);
    slot.idle.unref();
  }
}
