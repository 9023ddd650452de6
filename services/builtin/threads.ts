// Runs the work of the built-in models in threads that accounts share in turns. `worker.ts` is the code in a thread.

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

/** Each kind of work with its request and its result. */
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

/** A message to a thread: one task at a time. */
export interface Task {
  kind: TaskKind;
  request: Tasks[TaskKind]["request"];
  /** One 32-bit cell. A thread reads it during its work, when no message could reach it. Not 0: stop. */
  stop: SharedArrayBuffer;
  /** The port on which it reports its progress, in whole percents. */
  progress: MessagePort | undefined;
}

/** A thread's answer. `code` is that of a file operation that failed. */
export type TaskReply =
  | { result: Tasks[TaskKind]["result"] }
  | { failed: string; code: string | undefined };

/** Settings of a group of threads. */
export interface ThreadsOptions {
  /** Name of the threads in errors: "rendering". */
  name: string;
  threads: number;
  /** Gives the account its turn at one of the threads. */
  takeTurn: (accountId: string, signal: AbortSignal) => Promise<Turn>;
  /** Milliseconds for one task, the start of the thread included. */
  timeoutMs: number;
  /** A thread without work for this many ms ends. */
  idleMs: number;
}

/** Threads that accounts share. Each starts when it is first needed, and loads the code that its tasks need. */
export interface Threads extends AsyncDisposable {
  /**
   * Does a task in the account's turn. An abort rejects with the signal's reason, once the thread has stopped. Otherwise it rejects
   * with `BuiltinError` where the work failed, and with `UpstreamError` where the thread ended or took too long.
   */
  run<Kind extends TaskKind>(
    kind: Kind,
    request: Tasks[Kind]["request"],
    caller: BuiltinCaller,
    onProgress?: ProgressListener,
  ): Promise<Tasks[Kind]["result"]>;
}

/** JavaScript heap of a thread in MiB. Pixels and samples are outside of it. A text's body of 64 MiB is inside. */
const heapMib = 512;

/** Makes a group without a thread yet. */
export function createThreads(options: ThreadsOptions): Threads {
  const { name, threads, timeoutMs, idleMs, takeTurn } = options;
  const toError = (why: string) => new UpstreamError("timeout", { cause: new Error(why) });
  const closing = new AbortController();
  const pool = createWorkerPool<Task, TaskReply>({
    threads,
    start: () => new Worker(new URL("./worker.ts", import.meta.url), threadOptions(name, heapMib)),
    idleMs,
  });
  // A task that takes too long would do so again.
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

/** A channel whose first port calls the listener. It does not keep the process alive. */
function listenTo(onProgress: ProgressListener, signal: AbortSignal): MessageChannel {
  const channel = new MessageChannel();
  channel.port1.on("message", (percent: number) => {
    if (!signal.aborted) onProgress(percent);
  });
  channel.port1.unref();
  return channel;
}
