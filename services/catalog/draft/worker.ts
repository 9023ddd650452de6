import { parentPort } from "node:worker_threads";
import { muteThread } from "#kit/threads/thread.ts";
import type { CatalogText } from "../source.ts";
import { checkDraft, type DraftVerdict } from "./check.ts";

/** The entry of the thread that judges drafts of the catalog. An error ends the thread. */

/** A message to the thread: a draft, and the file in force. */
export interface DraftJob {
  draft: CatalogText;
  inForce: CatalogText;
}

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a thread for drafts");
muteThread();
port.on("message", ({ draft, inForce }: DraftJob) => {
  const verdict: DraftVerdict = checkDraft(draft, inForce);
  port.postMessage(verdict);
});
