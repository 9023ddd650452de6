import { Worker } from "node:worker_threads";
import { untilAborted } from "#kit/abort.ts";
import type { Clock } from "#kit/clock.ts";
import { createFairShare } from "#kit/fair-share.ts";
import type { JsonObject } from "#kit/json.ts";
import { threadOptions } from "#kit/thread.ts";
import { createWorkerPool } from "#kit/worker-pool.ts";
import { UpstreamFailure } from "../failure.ts";
import type { Memory, Thought } from "./thought.ts";
import type { Question, Reply } from "./worker.ts";

/** Who asks. */
export interface Asking {
  accountId: string;
  signal: AbortSignal;
}

/** Thinks of builtin answers beside the event loop: a schema or a prompt can make that take seconds. */
export interface Thinker extends AsyncDisposable {
  /** Throws `UpstreamFailure`, a refusal where the account asks too much at once, or the signal's reason. */
  think(body: JsonObject, asking: Asking): Promise<Thought>;
  /** As {@link think}. */
  remember(body: JsonObject, asking: Asking): Promise<Memory>;
}

/** Two, so that what one account asks for leaves a thread to the others. */
const threads = 2;
/** Requests of one account that wait: a thought takes a few ms, so that is a few seconds of them. */
const waitingEach = 1_024;
/** Waiting longer than this is a time-out, in ms. */
const waitMs = 30_000;
/** For one thought, the thread's start included, in ms: a hundred times what a long one takes, so that a busy machine ends no sound thread. */
const thoughtTimeoutMs = 30_000;
/** JavaScript heap of a thread in MiB: the vocabulary takes 75, a body of 64 MiB about as much again as its text. */
const heapMib = 512;
/** Without work for this long a thread ends, in ms: starting it anew takes 0.4 s. */
const idleMs = 10 * 60_000;

/** A thinker without a thread yet. */
export function createThinker({ clock }: { clock: Clock }): Thinker {
  const pool = createWorkerPool<Question, Reply>({
    name: "thinking",
    start: () =>
      new Worker(new URL("./worker.ts", import.meta.url), threadOptions("builtin", heapMib)),
    threads,
    answerTimeoutMs: thoughtTimeoutMs,
    // What takes too long would do so again.
    tries: 1,
    idleMs,
    toError: (why) => new UpstreamFailure("timeout", { cause: new Error(why) }),
  });
  const share = createFairShare(
    { places: threads, each: { places: 1, waiting: waitingEach }, waitMs },
    { clock, late: () => new UpstreamFailure("timeout") },
  );
  const ask = async (question: Question, { accountId, signal }: Asking): Promise<Reply> => {
    const turn = await share.take(accountId, signal);
    // The turn ends with the work, also where the caller has left before.
    const work = pool.run(question).finally(() => turn[Symbol.dispose]());
    return untilAborted(work, signal);
  };
  return {
    think: async (body, asking) => (await ask({ kind: "answer", body }, asking)) as Thought,
    remember: async (body, asking) => (await ask({ kind: "compaction", body }, asking)) as Memory,
    [Symbol.asyncDispose]: () => pool[Symbol.asyncDispose](),
  };
}
