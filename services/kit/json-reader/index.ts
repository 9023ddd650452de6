import { Worker } from "node:worker_threads";
import { untilAborted } from "../abort.ts";
import { copyInTurns } from "../bytes-in-turns.ts";
import { ErrorReason, RefusalError } from "../errors.ts";
import { createFairShare } from "../fair-share.ts";
import { threadOptions } from "../thread.ts";
import { createWorkerPool } from "../worker-pool.ts";
import { type ReadBody, readBody, type Wanted } from "./read.ts";
import type { ReadJob, ReadReply } from "./worker.ts";

export type { ReadBody, Wanted } from "./read.ts";

/** Reads request bodies: short ones at once, large ones in threads, so that none keeps the event loop. */
export interface JsonReader extends AsyncDisposable {
  /**
   * Refuses with INVALID_JSON, PAYLOAD_TOO_LARGE, RATE_LIMIT_EXCEEDED (the account has too many waiting) or
   * SERVICE_UNAVAILABLE; rejects with the signal's reason.
   */
  read(
    bytes: Uint8Array,
    wanted: Wanted,
    asking: { accountId: string; signal: AbortSignal },
  ): Promise<ReadBody>;
}

const kib = 1024;
/** A body up to this size is read where it is: whatever it holds, that takes some ms, and a thread costs half of one. */
const smallBytes = 128 * kib;
/** Two, so that what one account sends leaves a thread to the others. */
const threads = 2;
/** Bodies of one account that wait, and how long, in ms: the largest takes half a second. */
const waitingEach = 64;
const waitMs = 30_000;
/** For one body, the thread's start included, in ms: sixty times what the largest takes, so that a busy machine ends no sound thread. */
const readTimeoutMs = 30_000;
/** JavaScript heap of a thread in MiB: a body of 64 MiB as text, as values, and once more in canonical form. */
const heapMib = 512;
/** Without work for this long a thread ends, in ms: starting it anew takes 50. */
const idleMs = 60_000;

/** A reader without a thread yet. */
export function createJsonReader(): JsonReader {
  const unavailable = (cause?: unknown) =>
    new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
      metadata: { retry_after_ms: "1000" },
      cause,
    });
  const pool = createWorkerPool<ReadJob, ReadReply>({
    name: "reading",
    start: () =>
      new Worker(new URL("./worker.ts", import.meta.url), threadOptions("json", heapMib)),
    threads,
    answerTimeoutMs: readTimeoutMs,
    tries: 1,
    idleMs,
    toError: (why) => unavailable(new Error(why)),
  });
  const share = createFairShare({
    places: threads,
    each: { places: 1, waiting: waitingEach },
    waitMs,
  });
  const readInThread = async (bytes: Uint8Array, wanted: Wanted): Promise<ReadReply> => {
    const copy = await copyInTurns(bytes);
    return pool.run({ bytes: copy, wanted }, [copy.buffer]);
  };
  return {
    async read(bytes, wanted, { accountId, signal }) {
      if (bytes.length <= smallBytes) return readBody(bytes, wanted);
      const turn = await share.take(accountId, signal);
      // The turn ends with the work, also where the caller has left before.
      const work = readInThread(bytes, wanted).finally(() => turn[Symbol.dispose]());
      const reply = await untilAborted(work, signal);
      if ("read" in reply) return reply.read;
      throw new RefusalError(reply.reason, { message: reply.message });
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
