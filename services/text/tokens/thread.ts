import { Worker } from "node:worker_threads";
import { threadOptions } from "#kit/threads/thread.ts";
import { createWorkerPool, type WorkerPool } from "#kit/threads/worker-pool.ts";
import {
  tokenAnswerTimeoutMs,
  tokenBatchTries,
  tokenThreadHeapMib,
  tokenThreadIdleMs,
} from "../base/limits.ts";
import type { Tokens } from "./most.ts";

/** Pieces of text whose tokens are added up, until they are more than `limit`. */
export interface Batch {
  pieces: readonly string[];
  limit: number;
  /** Is it of interest what another vocabulary makes of them? */
  withMost: boolean;
}

/** Tokens could not be counted. Says nothing of the text. */
export class CountError extends Error {
  override readonly name = "CountError";
}

/** How the counting thread works where that is not as usual. */
export interface CountThreadOptions {
  start?: () => Worker;
  /** Default 10,000. */
  answerTimeoutMs?: number;
  /** Default 60,000. */
  idleMs?: number;
}

/** Starts the thread itself. */
export function startWorker(): Worker {
  const options = threadOptions("tokens", tokenThreadHeapMib);
  return new Worker(new URL("./worker.ts", import.meta.url), options);
}

/** The one counting thread of a process, and its queue. Rejects with {@link CountError}. */
export function createCountThread(options: CountThreadOptions): WorkerPool<Batch, Tokens> {
  return createWorkerPool({
    name: "counting",
    start: options.start ?? startWorker,
    threads: 1,
    answerTimeoutMs: options.answerTimeoutMs ?? tokenAnswerTimeoutMs,
    tries: tokenBatchTries,
    idleMs: options.idleMs ?? tokenThreadIdleMs,
    toError: (why) => new CountError(why),
  });
}
