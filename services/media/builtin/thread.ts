import { Worker } from "node:worker_threads";
import { createCancelFlag, raiseCancelFlag } from "./cancel.ts";
import { RenderError } from "./errors.ts";
import { CANCEL_GRACE_MS, THREAD_HEAP_MIB } from "./limits.ts";
import type { TaskKind, TaskMessage, TaskReply, Tasks } from "./tasks.ts";

/** One task on its way through the pool. Exactly one of `resolve` and `reject` is called, once. */
export type Job = {
  readonly kind: TaskKind;
  readonly request: Tasks[TaskKind]["request"];
  readonly timeoutMs: number;
  readonly signal: AbortSignal | undefined;
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
  const worker = new Worker(new URL("./worker.ts", import.meta.url), {
    name: "render",
    // The thread needs neither the process's flags nor its environment, where secrets are.
    execArgv: [],
    env: {},
    // What libraries print must not get into the process's own output.
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MIB },
  });
  worker.stdout.resume();
  worker.stderr.resume();
  worker.unref();
  let alive = true;
  let nextId = 1;
  let broken: unknown;
  worker.on("error", (error) => {
    broken = error;
  });
  const exited = new Promise<void>((resolve) => {
    worker.once("exit", () => {
      alive = false;
      resolve();
    });
  });

  const perform = async (job: Job): Promise<void> => {
    const id = nextId++;
    const flag = createCancelFlag();
    worker.ref();
    await new Promise<void>((finish) => {
      let stopReason: unknown;
      let grace: NodeJS.Timeout | undefined;
      const stop = (reason: unknown): void => {
        if (grace !== undefined) return;
        stopReason = reason;
        raiseCancelFlag(flag);
        grace = setTimeout(() => void worker.terminate(), CANCEL_GRACE_MS);
      };
      const onAbort = (): void => stop(job.signal?.reason);
      const limit = setTimeout(
        () => stop(new RenderError("timeout", `no ${job.kind} within ${job.timeoutMs} ms`)),
        job.timeoutMs,
      );
      const settle = (end: () => void): void => {
        clearTimeout(limit);
        clearTimeout(grace);
        job.signal?.removeEventListener("abort", onAbort);
        worker.off("message", onMessage);
        worker.off("exit", onExit);
        worker.unref();
        // A job that was stopped stays stopped, even if it finished at the last moment.
        if (grace !== undefined) job.reject(stopReason);
        else end();
        finish();
      };
      const onMessage = (reply: TaskReply): void => {
        if (reply.id !== id) return;
        if (reply.type === "progress") {
          if (grace === undefined) job.onProgress?.(reply.percent);
        } else if (reply.type === "done") settle(() => job.resolve(reply.result));
        else if (reply.type === "failed") {
          settle(() => job.reject(new RenderError("failed", reply.reason)));
        } else settle(() => job.reject(new RenderError("failed", "cancelled")));
      };
      const onExit = (): void => {
        const why = broken instanceof Error ? broken.message : "the thread ended";
        settle(() => job.reject(new RenderError("failed", why)));
      };
      worker.on("message", onMessage);
      worker.once("exit", onExit);
      job.signal?.addEventListener("abort", onAbort, { once: true });
      if (job.signal?.aborted) onAbort();
      const { kind, request } = job;
      worker.postMessage({ id, kind, request, flag } as TaskMessage);
    });
  };

  return {
    perform,
    alive: () => alive,
    end: async () => {
      await worker.terminate();
      await exited;
    },
  };
}
