import { untilAborted } from "#kit/base/abort.ts";
import { unavailable } from "#kit/base/errors.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import type { ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import { draftShare, draftTimeoutMs, maxDraftBytes } from "../limits.ts";
import { type DraftJob, type DraftVerdict, faultyDraft, type inThread } from "./check.ts";

/** Judges drafts in a thread: a file as large as may be takes a tenth of a second, a hostile one longer. */
export interface DraftChecker {
  /**
   * Refuses with SERVICE_UNAVAILABLE where the thread gives no answer in time, and with RATE_LIMIT_EXCEEDED where too many drafts wait.
   */
  check(job: DraftJob, signal: AbortSignal): Promise<DraftVerdict>;
}

const judging: ThreadTask = {
  name: "drafts",
  lane: "long",
  module: new URL("./check.ts", import.meta.url),
  answerTimeoutMs: draftTimeoutMs,
  tries: 1,
  toError: (why) => unavailable(new Error(why)),
};

/** Makes a checker that judges in the workshop. */
export function createDraftChecker(workshop: Workshop): DraftChecker {
  const share = createFairShare(draftShare);
  return {
    async check(job, signal) {
      const bytes = Buffer.byteLength(job.draft.text);
      if (bytes > maxDraftBytes) return faultyDraft(`a draft has at most ${maxDraftBytes} bytes`);
      // Every draft is an operator's.
      const turn = await share.take("operator", signal);
      const work = workshop
        .run<typeof inThread>(judging, job)
        .finally(() => turn[Symbol.dispose]());
      return await untilAborted(work, signal);
    },
  };
}
