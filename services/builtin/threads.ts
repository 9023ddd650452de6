import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import {
  type BuiltinCaller,
  BuiltinError,
  type ImageRequest,
  type ImageResult,
  type MusicRequest,
  type ProgressListener,
  type SoundResult,
  type SpeechRequest,
  type VideoRequest,
  type VideoResult,
} from "#common/words/builtin-models.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { Turn } from "#kit/share/fair-share.ts";
import { threadOptions } from "#kit/threads/thread.ts";
import { createWorkerPool } from "#kit/threads/worker-pool.ts";
import { UpstreamError } from "#kit/upstream/errors.ts";
import type { Memory, Thought } from "./text/chat-content.ts";

/** Each kind of work with what it takes and gives. */
export interface Tasks {
  image: { request: ImageRequest; result: ImageResult };
  video: { request: VideoRequest; result: VideoResult };
  speech: { request: SpeechRequest; result: SoundResult };
  music: { request: MusicRequest; result: SoundResult };
  /** A request in the Responses format. */
  answer: { request: JsonObject; result: Thought };
  compaction: { request: JsonObject; result: Memory };
}

export type TaskKind = keyof Tasks;

/** What a thread is sent: one task at a time. */
export interface Task {
  kind: TaskKind;
  request: Tasks[TaskKind]["request"];
  /** One 32-bit cell, which a thread sees while it computes and no message could reach it; not 0: stop. */
  stop: SharedArrayBuffer;
  /** Where it tells its progress, in whole percents. */
  progress: MessagePort | undefined;
}

/** What a thread answers; `code` is that of a file operation that failed. */
export type TaskReply =
  | { result: Tasks[TaskKind]["result"] }
  | { failed: string; code: string | undefined };

/** How a group of threads works. */
export interface ThreadsOptions {
  /** Names the threads in errors: "rendering". */
  name: string;
  threads: number;
  /** Gives the account its turn at one of the threads. */
  takeTurn: (accountId: string, signal: AbortSignal) => Promise<Turn>;
  /** For one task, the thread's start included, in ms. */
  timeoutMs: number;
  /** Without work for this long a thread ends, in ms. */
  idleMs: number;
}

/** Threads that accounts share. Each starts when it is first needed, and loads what its tasks need. */
export interface Threads extends AsyncDisposable {
  /**
   * Does a task in the account's turn. An abort rejects with the signal's reason, once the thread has stopped; else it
   * rejects with `BuiltinError` where the work failed, and `UpstreamError` where the thread ended or took too long.
   */
  run<Kind extends TaskKind>(
    kind: Kind,
    request: Tasks[Kind]["request"],
    caller: BuiltinCaller,
    onProgress?: ProgressListener,
  ): Promise<Tasks[Kind]["result"]>;
}

/** JavaScript heap of a thread in MiB; pixels and samples lie outside it, a text's body of 64 MiB lies in it. */
const heapMib = 512;

/** A group without a thread yet. */
export function createThreads(options: ThreadsOptions): Threads {
  const { name, threads, timeoutMs, idleMs, takeTurn } = options;
  const toError = (why: string) => new UpstreamError("timeout", { cause: new Error(why) });
  const closing = new AbortController();
  const pool = createWorkerPool<Task, TaskReply>({
    threads,
    start: () => new Worker(new URL("./worker.ts", import.meta.url), threadOptions(name, heapMib)),
    idleMs,
  });
  // What takes too long would do so again.
  const how = { name, answerTimeoutMs: timeoutMs, tries: 1, toError };
  return {
    async run<Kind extends TaskKind>(
      kind: Kind,
      request: Tasks[Kind]["request"],
      caller: BuiltinCaller,
      onProgress?: ProgressListener,
    ) {
      const signal = AbortSignal.any([caller.signal, closing.signal]);
      using _turn = await takeTurn(caller.accountId, signal);
      caller.onStart?.();
      const stop = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
      const raise = () => Atomics.store(new Int32Array(stop), 0, 1);
      signal.addEventListener("abort", raise, { once: true });
      const progress = onProgress && listenTo(onProgress, signal);
      try {
        const task = { kind, request, stop, progress: progress?.port2 };
        const reply = await pool.run(task, how, progress ? [progress.port2] : []);
        signal.throwIfAborted();
        if ("failed" in reply) throw new BuiltinError(reply.failed, reply.code);
        return reply.result as Tasks[Kind]["result"];
      } catch (error) {
        signal.throwIfAborted();
        throw error;
      } finally {
        signal.removeEventListener("abort", raise);
        progress?.port1.close();
      }
    },
    async [Symbol.asyncDispose]() {
      closing.abort(toError(`the ${name} threads are closed`));
      await pool[Symbol.asyncDispose]();
    },
  };
}

/** A channel whose first port tells the listener; it does not keep the process alive. */
function listenTo(onProgress: ProgressListener, signal: AbortSignal): MessageChannel {
  const channel = new MessageChannel();
  channel.port1.on("message", (percent: number) => {
    if (!signal.aborted) onProgress(percent);
  });
  channel.port1.unref();
  return channel;
}
