// The code of a thread of the built-in models: takes one task after another, and loads what its kind needs. `threads.ts`
// starts it.

import { parentPort } from "node:worker_threads";
import { muteThread } from "#kit/threads/thread.ts";
import type { Task, TaskKind, TaskReply, Tasks } from "./threads.ts";

/** Called between the steps of a long task. Throws once the task is not wanted. */
export type Checkpoint = () => void;

type Maker<Kind extends TaskKind> = (
  request: Tasks[Kind]["request"],
  checkpoint: Checkpoint,
  onProgress: (percent: number) => void,
) => Tasks[Kind]["result"] | Promise<Tasks[Kind]["result"]>;

const makers: { [Kind in TaskKind]: () => Promise<Maker<Kind>> } = {
  image: async () => (await import("./image.ts")).renderImage,
  video: async () => (await import("./video/video.ts")).renderVideo,
  speech: async () => (await import("./speech/speech.ts")).renderSpeech,
  music: async () => (await import("./music/music.ts")).renderMusic,
  answer: async () => (await import("./text/chat-content.ts")).think,
  compaction: async () => (await import("./text/chat-content.ts")).remember,
};

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a thread");
muteThread();
port.on("message", async (task: Task) => {
  const reply = await perform(task);
  const made = "result" in reply && "bytes" in reply.result ? [reply.result.bytes.buffer] : [];
  port.postMessage(reply, made as ArrayBuffer[]);
});

async function perform({ kind, request, stop, progress }: Task): Promise<TaskReply> {
  const flag = new Int32Array(stop);
  const checkpoint = () => {
    if (Atomics.load(flag, 0) !== 0) throw new Error("the task is not wanted any more");
  };
  let shown = -1;
  const onProgress = (percent: number) => {
    if (percent !== shown) progress?.postMessage(percent);
    shown = percent;
  };
  try {
    checkpoint();
    const make = (await makers[kind]()) as Maker<TaskKind>;
    return { result: await make(request, checkpoint, onProgress) };
  } catch (error) {
    const { message, code }: NodeJS.ErrnoException =
      error instanceof Error ? error : new Error("unknown");
    return { failed: message, code };
  } finally {
    progress?.close();
  }
}
