import { Worker } from "node:worker_threads";
import { untilAborted } from "#kit/base/abort.ts";
import { unavailable } from "#kit/base/errors.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { threadOptions } from "#kit/threads/thread.ts";
import { createWorkerPool } from "#kit/threads/worker-pool.ts";
import {
  draftIdleMs,
  draftShare,
  draftThreadHeapMib,
  draftTimeoutMs,
  maxDraftBytes,
} from "../limits.ts";
import { type DraftVerdict, faultyDraft } from "./check.ts";
import type { DraftJob } from "./worker.ts";

/** Judges drafts in a thread. The largest file takes a tenth of a second, and a hostile one takes longer. */
export interface DraftChecker extends AsyncDisposable {
  /**
   * Refuses with SERVICE_UNAVAILABLE where the thread gives no answer in time, and with RATE_LIMIT_EXCEEDED where too many drafts wait.
   */
  check(job: DraftJob, signal: AbortSignal): Promise<DraftVerdict>;
}

/** Makes a checker without a thread yet. */
export function createDraftChecker(): DraftChecker {
  const pool = createWorkerPool<DraftJob, DraftVerdict>({
    name: "drafts",
    start: () =>
      new Worker(
        new URL("./worker.ts", import.meta.url),
        threadOptions("drafts", draftThreadHeapMib),
      ),
    threads: 1,
    answerTimeoutMs: draftTimeoutMs,
    tries: 1,
    idleMs: draftIdleMs,
    toError: (why) => unavailable(new Error(why)),
  });
  const share = createFairShare(draftShare);
  return {
    async check(job, signal) {
      const bytes = Buffer.byteLength(job.draft.text);
      if (bytes > maxDraftBytes) return faultyDraft(`a draft has at most ${maxDraftBytes} bytes`);
      // Every draft is an operator's.
      const turn = await share.take("operator", signal);
      const work = pool.run(job).finally(() => turn[Symbol.dispose]());
      return await untilAborted(work, signal);
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
