import { Worker } from "node:worker_threads";
import { untilAborted } from "#kit/base/abort.ts";
import { unavailable } from "#kit/base/errors.ts";
import { copyInTurns } from "#kit/base/in-turns.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { threadOptions } from "#kit/threads/thread.ts";
import { createWorkerPool } from "#kit/threads/worker-pool.ts";
import type { Lift } from "../../upstreams/text/large-parts.ts";
import { largeAnswerBytes } from "../../upstreams/text/limits.ts";
import type { ReadPlain } from "../../upstreams/text/plain.ts";
import {
  largeAnswerHeapMib,
  largeAnswerShare,
  largeAnswerThreadIdleMs,
  largeAnswerThreads,
  largeAnswerTimeoutMs,
} from "../base/limits.ts";
import { type Task, type TaskArguments, type TaskResult, tasks } from "./tasks.ts";
import type { LargeJob } from "./worker.ts";

/** Works on whole answers: on short ones at once, on large ones in threads, so that none keeps the event loop. */
export interface LargeAnswers extends AsyncDisposable {
  lift: Lift;
  plain: ReadPlain;
  /**
   * Does a task; its first argument decides whether that needs a thread, and is copied. Rejects with SERVICE_UNAVAILABLE where
   * no thread did it, with RATE_LIMIT_EXCEEDED where the account has too many waiting, and with the signal's reason.
   */
  run<T extends Exclude<Task, "lift">>(
    task: T,
    asking: { accountId: string; signal?: AbortSignal },
    ...given: TaskArguments<T>
  ): Promise<TaskResult<T>>;
}

/** Makes {@link LargeAnswers} without a thread yet. */
export function createLargeAnswers(): LargeAnswers {
  const pool = createWorkerPool<LargeJob, unknown>({
    name: "answers",
    start: () =>
      new Worker(
        new URL("./worker.ts", import.meta.url),
        threadOptions("answers", largeAnswerHeapMib),
      ),
    threads: largeAnswerThreads,
    answerTimeoutMs: largeAnswerTimeoutMs,
    tries: 1,
    idleMs: largeAnswerThreadIdleMs,
    toError: (why) => unavailable(new Error(why)),
  });
  const share = createFairShare(largeAnswerShare);
  const never = new AbortController().signal;
  const inThread = async <T extends Task>(
    task: T,
    { accountId, signal = never }: { accountId: string; signal?: AbortSignal },
    prepare: () => Promise<{ bytes: Uint8Array<ArrayBuffer>; given: unknown[] }>,
  ): Promise<TaskResult<T>> => {
    const turn = await share.take(accountId, signal);
    const doing = async () => {
      const { bytes, given } = await prepare();
      return (await pool.run({ task, given }, [bytes.buffer])) as TaskResult<T>;
    };
    // The turn ends with the work, also where the caller has left before.
    const work = doing().finally(() => turn[Symbol.dispose]());
    return await untilAborted(work, signal);
  };
  const run: LargeAnswers["run"] = async (task, asking, ...given) => {
    const work = tasks[task] as (...given: unknown[]) => TaskResult<typeof task>;
    const [first, ...rest] = given;
    if (first.length <= largeAnswerBytes) return work(...given);
    // Copied in its turn, and not before: what waits lies in memory once.
    return await inThread(task, asking, async () => {
      const bytes = await copyInTurns(first);
      return { bytes, given: [bytes, ...rest] };
    });
  };
  return {
    async lift(job, asking) {
      return await inThread("lift", asking, async () => {
        const bytes = await copyInTurns(job.bytes);
        return { bytes, given: [{ ...job, bytes }] };
      });
    },
    async plain(read, request, asking) {
      if (read.length <= largeAnswerBytes) return tasks.plain(read, request);
      return await inThread("plain", asking, async () => {
        const bytes = hasOwnBuffer(read) ? read : await copyInTurns(read);
        return { bytes, given: [bytes, request] };
      });
    },
    run,
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}

/** Can the buffer go to a thread without a copy? */
function hasOwnBuffer(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength;
}
