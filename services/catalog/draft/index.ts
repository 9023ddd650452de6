// Has drafts of the catalog judged in a thread, one at a time. The methods that check a draft or put one in force call it.
// `check.ts` judges.

import { createFairShare, inTurn } from "#kit/share/fair-share.ts";
import type { ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import { draftShare, draftTimeoutMs, maxDraftBytes } from "../limits.ts";
import { type DraftJob, faultyDraft, type inThread, type JudgedDraft } from "./check.ts";

/** Judges drafts in a thread: a file as large as may be takes a tenth of a second, a hostile one longer. */
export interface DraftChecker {
  /**
   * Refuses with SERVICE_UNAVAILABLE where the thread gives no answer in time, and with RATE_LIMIT_EXCEEDED where too many drafts wait.
   */
  check(job: DraftJob, signal: AbortSignal): Promise<JudgedDraft>;
}

const judging: ThreadTask = {
  name: "drafts",
  lane: "long",
  module: new URL("./check.ts", import.meta.url),
  answerTimeoutMs: draftTimeoutMs,
};

/** Makes a checker that judges in the workshop. */
export function createDraftChecker(workshop: Workshop): DraftChecker {
  const share = createFairShare(draftShare);
  return {
    async check(job, signal) {
      const bytes = Buffer.byteLength(job.draft.text);
      if (bytes > maxDraftBytes) return faultyDraft(`a draft has at most ${maxDraftBytes} bytes`);
      // Every draft is an operator's.
      const asking = { accountId: "operator", signal };
      return await inTurn(share, asking, () => workshop.run<typeof inThread>(judging, job));
    },
  };
}
