import { Worker } from "node:worker_threads";
import { untilAborted } from "#kit/base/abort.ts";
import { unavailable } from "#kit/base/errors.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { threadOptions } from "#kit/threads/thread.ts";
import { createWorkerPool } from "#kit/threads/worker-pool.ts";
import {
  measuringHeapMib,
  measuringShare,
  measuringThreadIdleMs,
  measuringThreads,
  measuringTimeoutMs,
} from "../../base/limits.ts";
import type { MeasuredSound } from "./sound.ts";

/** Measures callers' sounds in threads: a library reads each, and a hostile one takes no more than its thread. */
export interface SoundMeter extends AsyncDisposable {
  /**
   * Undefined: the bytes are no sound. Refuses with SERVICE_UNAVAILABLE, or with RATE_LIMIT_EXCEEDED where the account has too many
   * waiting; rejects with the signal's reason. The bytes are used up: they come back in the answer, so that they are held once.
   */
  measure(
    bytes: Uint8Array<ArrayBuffer>,
    asking: { accountId: string; signal: AbortSignal },
  ): Promise<MeasuredSound | undefined>;
}

/** A meter without a thread yet. */
export function createSoundMeter(): SoundMeter {
  const turns = createFairShare(measuringShare);
  const pool = createWorkerPool<Uint8Array<ArrayBuffer>, MeasuredSound | undefined>({
    name: "measuring",
    start: () =>
      new Worker(
        new URL("./worker.ts", import.meta.url),
        threadOptions("sounds", measuringHeapMib),
      ),
    threads: measuringThreads,
    answerTimeoutMs: measuringTimeoutMs,
    tries: 1,
    idleMs: measuringThreadIdleMs,
    toError: (why) => unavailable(new Error(why)),
  });
  return {
    async measure(bytes, { accountId, signal }) {
      const turn = await turns.take(accountId, signal);
      // The turn ends with the work, also where the caller has left before.
      const work = pool.run(bytes, [bytes.buffer]).finally(() => turn[Symbol.dispose]());
      return await untilAborted(work, signal);
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
