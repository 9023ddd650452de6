// Runs work of some ms or more in threads, so that other requests go on. Reading bodies, counting tokens and measuring files are
// such work.

import { type Transferable, Worker } from "node:worker_threads";
import { unavailable } from "#kit/base/errors.ts";
import { threadOptions } from "./thread.ts";
import type { WorkshopJob } from "./worker.ts";
import { createWorkerPool, type JobOptions } from "./worker-pool.ts";

/** The threads of a process for work that would block its event loop. All parts of the process share them. */
export interface Workshop extends AsyncDisposable {
  /**
   * Calls `inThread` of the task's module with `given`, in a thread. Buffers in `transfer` go to the thread and are empty here.
   * Rejects with the task's error where no thread answered.
   */
  run<InThread extends (given: never) => unknown>(
    task: ThreadTask,
    given: Parameters<InThread>[0],
    transfer?: readonly Transferable[],
  ): Promise<Answer<InThread>>;
}

type Answer<InThread extends (given: never) => unknown> = Awaited<ReturnType<InThread>>;

/** Work for a thread. Callers bound it by a fair share of their own. */
export interface ThreadTask extends Pick<JobOptions, "name" | "answerTimeoutMs"> {
  lane: Lane;
  /** Default 1. */
  tries?: number;
  /** Default: SERVICE_UNAVAILABLE. */
  toError?: JobOptions["toError"];
  /** The module to be loaded in the thread. It exports `inThread`, and `buffersOf` where results have bytes to hand over. */
  module: URL;
}

/** `short` takes some milliseconds at most, `long` may take longer. Short work never waits behind long work. */
export type Lane = "short" | "long";

/** Settings of a lane's threads. */
interface LaneOptions {
  threads: number;
  /** JavaScript heap of a thread, in MiB. */
  heapMib: number;
  /** A thread without work for this many ms ends. */
  idleMs: number;
}

/**
 * One short thread: the vocabulary for counts takes 35 MiB of a thread, what it remembers of words up to 100, and loading it 0.3 s.
 * Two long ones, so that what one account has leaves a thread to the others. 64 MiB of log probabilities as text, as values, and as
 * text once more are the largest work. A long thread may keep 40 MiB of the bodies that it read, and starting another takes a tenth of a second.
 */
const lanes: Readonly<Record<Lane, LaneOptions>> = {
  short: { threads: 1, heapMib: 256, idleMs: 60_000 },
  long: { threads: 2, heapMib: 768, idleMs: 15_000 },
};

const usual = { tries: 1, toError: (why: string) => unavailable(new Error(why)) };

/** Settings that differ in tests. */
export interface WorkshopOptions {
  start?: (lane: Lane) => Worker;
  idleMs?: number;
}

/** Starts a thread that does any task. */
export function startThread(lane: Lane): Worker {
  const { heapMib } = lanes[lane];
  return new Worker(
    new URL("./worker.ts", import.meta.url),
    threadOptions(`${lane} work`, heapMib),
  );
}

/** Makes a workshop without a thread yet. */
export function createWorkshop({ start = startThread, idleMs }: WorkshopOptions = {}): Workshop {
  const poolOf = (lane: Lane) =>
    createWorkerPool<WorkshopJob, unknown>({
      start: () => start(lane),
      threads: lanes[lane].threads,
      idleMs: idleMs ?? lanes[lane].idleMs,
    });
  const pools = { short: poolOf("short"), long: poolOf("long") };
  return {
    run: <InThread extends (given: never) => unknown>(
      task: ThreadTask,
      given: Parameters<InThread>[0],
      transfer?: readonly Transferable[],
    ) => {
      const job = { module: task.module.href, given };
      return pools[task.lane].run(job, { ...usual, ...task }, transfer) as Promise<
        Answer<InThread>
      >;
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(Object.values(pools).map((pool) => pool[Symbol.asyncDispose]()));
    },
  };
}
