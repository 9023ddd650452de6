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

/** A few threads that share a queue. Disposing ends what runs and refuses what comes. */
export type Pool = AsyncDisposable & {
  /**
   * Does a task on the next free thread, first come, first served. Rejects with the signal's reason when
   * it is aborted (a running task has stopped by then), and with `RenderError` otherwise.
   */
  readonly run: <K extends TaskKind>(
    kind: K,
    request: Tasks[K]["request"],
    options: RunOptions,
  ) => Promise<Tasks[K]["result"]>;
};

type Slot = { thread: Thread | undefined; busy: boolean; idle: NodeJS.Timeout | undefined };

/** Creates a pool of at most `threads` threads; each starts when it is first needed. */
export function createPool(threads: number): Pool {
  if (!Number.isInteger(threads) || threads < 1 || threads > MAX_THREADS) {
    throw new RangeError(`threads must be 1 to ${MAX_THREADS}`);
  }
  const slots: Slot[] = Array.from({ length: threads }, () => ({
    thread: undefined,
    busy: false,
    idle: undefined,
  }));
  const waiting: Job[] = [];
  const closing = new AbortController();
  const working = new Set<Promise<void>>();

  const startNext = (): void => {
    const slot = slots.find(({ busy }) => !busy);
    if (slot === undefined) return;
    const job = waiting.shift();
    if (job === undefined) return;
    const work = occupy(slot, job).finally(() => {
      working.delete(work);
      startNext();
    });
    working.add(work);
  };
  const occupy = async (slot: Slot, job: Job): Promise<void> => {
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
  };

  const enqueue = (job: Job): void => {
    const leave = (): void => {
      const at = waiting.indexOf(job);
      if (at < 0) return;
      waiting.splice(at, 1);
      job.reject(job.signal?.reason);
    };
    job.signal?.addEventListener("abort", leave, { once: true });
    waiting.push(job);
    startNext();
  };

  return {
    run: async <K extends TaskKind>(
      kind: K,
      request: Tasks[K]["request"],
      options: RunOptions,
    ): Promise<Tasks[K]["result"]> => {
      closing.signal.throwIfAborted();
      options.signal?.throwIfAborted();
      if (waiting.length >= MAX_WAITING_TASKS) {
        throw new RenderError("busy", "too many renderings wait");
      }
      const signals = [closing.signal, ...(options.signal ? [options.signal] : [])];
      return await new Promise<Tasks[K]["result"]>((resolve, reject) => {
        enqueue({
          kind,
          request,
          timeoutMs: options.timeoutMs,
          onProgress: options.onProgress,
          signal: AbortSignal.any(signals),
          resolve,
          reject,
        });
      });
    },
    [Symbol.asyncDispose]: async () => {
      closing.abort(new RenderError("closed", "the renderer has been closed"));
      await Promise.all(working);
      for (const slot of slots) clearTimeout(slot.idle);
      await Promise.all(slots.map(({ thread }) => thread?.end()));
    },
  };
}
