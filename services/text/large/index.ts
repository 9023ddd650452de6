// Does the work on whole answers in threads where they are large, since a long step would block every other request. `tasks.ts`
// lists the work.

import type { Awaitable } from "#kit/base/awaitable.ts";
import { copyInTurns } from "#kit/base/in-turns.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { createFairShare, inTurn } from "#kit/share/fair-share.ts";
import type { ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import type { Lift } from "../../upstreams/text/large-parts.ts";
import { largeAnswerBytes } from "../../upstreams/text/limits.ts";
import type { ReadPlain } from "../../upstreams/text/plain.ts";
import { largeAnswerShare, largeAnswerTimeoutMs } from "../base/limits.ts";
import { type inThread, type Task, type TaskArguments, type TaskResult, tasks } from "./tasks.ts";

/** Works on whole answers, on short ones at once and on large ones in threads, so that none blocks the event loop. */
export interface LargeAnswers {
  lift: Lift;
  plain: ReadPlain;
  /**
   * Does a task. The size of its first argument decides whether it needs a thread, and the argument is copied. A promise where it needs
   * one. That rejects with SERVICE_UNAVAILABLE where no thread did it, with RATE_LIMIT_EXCEEDED where too much work of the account
   * waits, and with the signal's reason.
   */
  run<T extends Exclude<Task, "lift">>(
    task: T,
    asking: { accountId: string; signal?: StopSignal },
    ...given: TaskArguments<T>
  ): Awaitable<TaskResult<T>>;
}

const largeAnswer: ThreadTask = {
  name: "answers",
  lane: "long",
  module: new URL("./tasks.ts", import.meta.url),
  answerTimeoutMs: largeAnswerTimeoutMs,
};

/** Makes {@link LargeAnswers} whose long work is done in the workshop. */
export function createLargeAnswers(workshop: Workshop): LargeAnswers {
  const share = createFairShare(largeAnswerShare);
  const never = new AbortController().signal;
  const elsewhere = <T extends Task>(
    task: T,
    { accountId, signal = never }: { accountId: string; signal?: StopSignal },
    prepare: () => Promise<{ bytes: Uint8Array<ArrayBuffer>; given: unknown[] }>,
  ) =>
    inTurn(share, { accountId, signal }, async () => {
      const { bytes, given } = await prepare();
      const job = { task, given };
      const result = await workshop.run<typeof inThread>(largeAnswer, job, [bytes.buffer]);
      return result as TaskResult<T>;
    });
  const run: LargeAnswers["run"] = (task, asking, ...given) => {
    const work = tasks[task] as (...given: unknown[]) => TaskResult<typeof task>;
    const [first, ...rest] = given;
    if (first.length <= largeAnswerBytes) return work(...given);
    // Copied in its turn and not before, so that waiting work is in memory once.
    return elsewhere(task, asking, async () => {
      const bytes = await copyInTurns(first);
      return { bytes, given: [bytes, ...rest] };
    });
  };
  return {
    async lift(job, asking) {
      return await elsewhere("lift", asking, async () => {
        const bytes = await copyInTurns(job.bytes);
        return { bytes, given: [{ ...job, bytes }] };
      });
    },
    async plain(read, request, asking) {
      if (read.length <= largeAnswerBytes) return tasks.plain(read, request);
      return await elsewhere("plain", asking, async () => {
        const bytes = hasOwnBuffer(read) ? read : await copyInTurns(read);
        return { bytes, given: [bytes, request] };
      });
    },
    run,
  };
}

/** Can the buffer go to a thread without a copy? */
function hasOwnBuffer(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer && bytes.buffer.byteLength === bytes.byteLength;
}
