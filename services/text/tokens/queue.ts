import type { Worker } from "node:worker_threads";
import { tokenAnswerTimeoutMs, tokenBatchTries, tokenThreadIdleMs } from "../limits.ts";
import {
  type Batch,
  CountError,
  type CountThread,
  startCountThread,
  startWorker,
} from "./thread.ts";

/** Batches that wait for the one counting thread of a process. */
export interface CountQueue extends AsyncDisposable {
  /**
   * Tokens of a batch, in the order in which they came. A thread that fails is replaced and the batch counted anew;
   * rejects with {@link CountError} where that fails too, and from disposal on.
   */
  count(batch: Batch): Promise<number>;
}

/** How a {@link CountQueue} works where that is not as usual. */
export interface CountQueueOptions {
  start?: () => Worker;
  /** Default 10,000. */
  answerTimeoutMs?: number;
  /** Default 60,000. */
  idleMs?: number;
}

interface Waiting extends PromiseWithResolvers<number> {
  readonly batch: Batch;
}

/** A queue without a thread yet: the first batch starts it. It ends when it has had nothing to do for a while. */
export function createCountQueue(options: CountQueueOptions = {}): CountQueue {
  const { answerTimeoutMs = tokenAnswerTimeoutMs, idleMs = tokenThreadIdleMs } = options;
  const { start = startWorker } = options;
  const waiting: Waiting[] = [];
  let thread: CountThread | undefined;
  let idle: NodeJS.Timeout | undefined;
  let isWorking = false;
  let isClosed = false;

  const attempt = async (batch: Batch): Promise<number> => {
    for (let tries = 1; ; tries++) {
      try {
        if (isClosed) throw closed();
        if (!thread?.isUsable()) thread = startCountThread(start);
        return await thread.count(batch, answerTimeoutMs);
      } catch (error) {
        void thread?.end();
        if (isClosed || tries >= tokenBatchTries) throw error;
      }
    }
  };
  const work = async () => {
    isWorking = true;
    clearTimeout(idle);
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      await attempt(next.batch).then(next.resolve, next.reject);
    }
    isWorking = false;
    idle = setTimeout(() => void thread?.end(), idleMs).unref();
  };
  return {
    async count(batch) {
      if (isClosed) throw closed();
      const entry = { ...Promise.withResolvers<number>(), batch };
      waiting.push(entry);
      if (!isWorking) void work();
      return await entry.promise;
    },
    async [Symbol.asyncDispose]() {
      isClosed = true;
      for (const entry of waiting.splice(0)) entry.reject(closed());
      clearTimeout(idle);
      await thread?.end();
    },
  };
}

function closed(): CountError {
  return new CountError("the counting thread is closed");
}
