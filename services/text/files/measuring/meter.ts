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
import type { TakenSound } from "../sound/length.ts";
import type { MeasuredSound } from "./sound.ts";

/** What a measuring thread is asked. */
export interface MeasuringJob {
  what: keyof MeasuringReply;
  bytes: Uint8Array<ArrayBuffer>;
}

/** What it answers. */
export interface MeasuringReply {
  /** A WAV or an MP3; undefined: it is neither. */
  speech: MeasuredSound | undefined;
  /** A sound in any format that is transcribed; undefined: it is none. */
  sound: TakenSound | undefined;
}

/** Measures callers' sounds in threads: each is taken apart, and a hostile one takes no more than its thread. */
export interface FileMeter extends AsyncDisposable {
  /**
   * Refuses with SERVICE_UNAVAILABLE, or with RATE_LIMIT_EXCEEDED where the account has too many waiting; rejects with the
   * signal's reason. A sound is used up: what goes upstream in its place comes back, so that it is held once.
   */
  measure<W extends keyof MeasuringReply>(
    what: W,
    bytes: Uint8Array,
    asking: { accountId: string; signal: AbortSignal },
  ): Promise<MeasuringReply[W]>;
}

/** A meter without a thread yet. */
export function createFileMeter(): FileMeter {
  const turns = createFairShare(measuringShare);
  const pool = createWorkerPool<MeasuringJob, MeasuringReply[keyof MeasuringReply]>({
    name: "measuring",
    start: () =>
      new Worker(new URL("./worker.ts", import.meta.url), threadOptions("files", measuringHeapMib)),
    threads: measuringThreads,
    answerTimeoutMs: measuringTimeoutMs,
    tries: 1,
    idleMs: measuringThreadIdleMs,
    toError: (why) => unavailable(new Error(why)),
  });
  const run = async <W extends keyof MeasuringReply>(what: W, bytes: Uint8Array) => {
    const own = bytes as Uint8Array<ArrayBuffer>;
    return (await pool.run({ what, bytes: own }, [own.buffer])) as MeasuringReply[W];
  };
  return {
    async measure(what, bytes, { accountId, signal }) {
      const turn = await turns.take(accountId, signal);
      // The turn ends with the work, also where the caller has left before.
      const work = run(what, bytes).finally(() => turn[Symbol.dispose]());
      return await untilAborted(work, signal);
    },
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
