// Runs `read.ts` in a thread of the workshop, and hands a refusal back as data, since an error would end the thread.

import { ErrorReason, isRefusal, type Reason } from "#kit/base/errors.ts";
import { type ReadBody, readBody, type Wanted } from "./read.ts";

/** A body that was read, or the refusal. */
export type ReadReply = { read: ReadBody } | { reason: Reason; message: string; param?: string };

/** Reads a body in a thread. */
export function inThread({ bytes, wanted }: { bytes: Uint8Array; wanted: Wanted }): ReadReply {
  try {
    return { read: readBody(bytes, wanted) };
  } catch (error) {
    if (isRefusal(error)) {
      const { reason, message, param } = error;
      return { reason, message, ...(param ? { param } : {}) };
    }
    // A body that nests too deep for the stack, or is too much for the heap's strings, counts as no JSON.
    if (!(error instanceof RangeError)) throw error;
    return { reason: ErrorReason.INVALID_JSON, message: "The body must be a valid JSON object." };
  }
}
