import { parentPort } from "node:worker_threads";
import { ErrorReason, isRefusal, type Reason } from "#kit/base/errors.ts";
import { muteThread } from "#kit/threads/thread.ts";
import { type ReadBody, readBody, type Wanted } from "./read.ts";

/** The entry of a reading thread. It answers each body with the result of reading it, or with the refusal. */

/** A message to the thread. */
export interface ReadJob {
  bytes: Uint8Array;
  wanted: Wanted;
}

/** The thread's answer. */
export type ReadReply = { read: ReadBody } | { reason: Reason; message: string; param?: string };

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a reading thread");
muteThread();
port.on("message", ({ bytes, wanted }: ReadJob) => {
  let reply: ReadReply;
  try {
    reply = { read: readBody(bytes, wanted) };
  } catch (error) {
    // A body that nests too deep for the stack, or is too much for the heap's strings, counts as no JSON.
    if (!isRefusal(error) && !(error instanceof RangeError)) throw error;
    reply = isRefusal(error)
      ? {
          reason: error.reason,
          message: error.message,
          ...(error.param ? { param: error.param } : {}),
        }
      : { reason: ErrorReason.INVALID_JSON, message: "The body must be a valid JSON object." };
  }
  port.postMessage(reply);
});
