// Chooses where a request's body is read: short ones on the event loop, others in threads, in turns of accounts. The gateway
// and media share the reader.

import type { Awaitable } from "#kit/base/awaitable.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { copyInTurns } from "#kit/base/in-turns.ts";
import { shapeFault } from "#kit/base/json.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { createFairShare, type FairShareBounds, inTurn } from "#kit/share/fair-share.ts";
import type { Lane, ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import type { inThread } from "./in-thread.ts";
import { type ReadBody, readShaped, type Wanted } from "./read.ts";

export type { ReadBody, Wanted } from "./read.ts";

/** Reads request bodies: short ones at once, large ones and those of many names or values in threads, so that none keeps the event loop. */
export interface JsonReader {
  /**
   * Refuses with INVALID_JSON, INVALID_VALUE, PAYLOAD_TOO_LARGE, RATE_LIMIT_EXCEEDED (too many bodies of the account wait) or
   * SERVICE_UNAVAILABLE. Rejects with the signal's reason.
   */
  read(bytes: Uint8Array, wanted: Wanted, asking: Asking): Awaitable<ReadBody>;
}

/** The account of a body, and the signal that ends the wait for a turn. */
interface Asking {
  accountId: string;
  signal: StopSignal;
}

const kib = 1024;
/**
 * A body up to this size is read on the event loop, unless it has many names or values. That takes less than a ms, and using a thread
 * costs half a ms.
 */
const smallBytes = 128 * kib;
/**
 * Names of a body that is read on the event loop. A name that no body had before costs the parser some microseconds. So 60 KB of new
 * names cost as much as 20 prompts of that size, and an account could send hundreds of such bodies at once. An agent's prompt has some
 * hundred names.
 */
export const fewNames = 500;
/**
 * Values and names of a body that is read on the event loop, by brackets, commas and colons outside its texts. Each costs up to 2 µs to
 * parse, weigh and fingerprint. That is for a number that a double rounds; others cost a tenth of it. 60,000 values in 128 KiB blocked
 * the event loop for 20 ms, and requests at the rate of one key filled it. Four for each name, so that only a list of numbers is a body
 * with few names and many values.
 */
export const fewMarks = 4 * fewNames;
/**
 * A body up to this size, or a small one with many names or values, is read in a separate thread. So work of a few ms does not wait
 * behind work of half a second, of which two accounts may have any number.
 */
const mediumBytes = 1024 * kib;
/**
 * Medium bodies that are read at once, and those of one account that wait. Accounts take turns. As many agents of one account may begin
 * at once as it may have bodies waiting at the edge.
 */
export const mediumShare: FairShareBounds = {
  places: 1,
  each: { places: 1, waiting: 256 },
  waitMs: 30_000,
};
/**
 * Large bodies that are read at once, those of one account that wait, and how long, in ms. The largest takes half a second. Two places,
 * so that one account's bodies leave one to the others.
 */
export const readingShare: FairShareBounds = {
  places: 2,
  each: { places: 1, waiting: 64 },
  waitMs: 30_000,
};
/**
 * Milliseconds for one body, the start of the thread included. That is sixty times the time of the largest body, so that a busy machine
 * does not end a healthy thread.
 */
const readTimeoutMs = 30_000;

const reading: Omit<ThreadTask, "lane"> = {
  name: "reading",
  module: new URL("./in-thread.ts", import.meta.url),
  answerTimeoutMs: readTimeoutMs,
};

/** Makes a reader whose long work is done in the workshop. */
export function createJsonReader(workshop: Workshop): JsonReader {
  const laneOf = (lane: Lane, bounds: FairShareBounds) => ({
    share: createFairShare(bounds),
    task: { ...reading, lane },
  });
  const medium = laneOf("short", mediumShare);
  const large = laneOf("long", readingShare);
  const readElsewhere = async (bytes: Uint8Array, wanted: Wanted, asking: Asking) => {
    const { share, task } = bytes.length <= mediumBytes ? medium : large;
    const reply = await inTurn(share, asking, async () => {
      const copy = await copyInTurns(bytes);
      return await workshop.run<typeof inThread>(task, { bytes: copy, wanted }, [copy.buffer]);
    });
    if ("read" in reply) return reply.read;
    throw new RefusalError(reply.reason, reply);
  };
  return {
    read(bytes, wanted, asking) {
      if (bytes.length <= smallBytes) {
        const fault = shapeFault(bytes, { marks: fewMarks, names: fewNames });
        if (fault === undefined) return readShaped(bytes, wanted);
        if (fault === "deep") refuse(ErrorReason.INVALID_JSON);
      }
      return readElsewhere(bytes, wanted, asking);
    },
  };
}
