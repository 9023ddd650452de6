import { parentPort } from "node:worker_threads";
import sharp from "sharp";
import { muteThread } from "#kit/thread.ts";
import { checkpointOf } from "./cancel.ts";
import { renderImage } from "./image.ts";
import { renderMusic } from "./music/music.ts";
import { renderSpeech } from "./speech/speech.ts";
import type { TaskKind, TaskMessage, TaskReply, Tasks } from "./tasks.ts";
import { type FontBook, openFontBook } from "./text/fonts.ts";
import { renderVideo } from "./video/video.ts";

/** The entry of a rendering thread: takes one task after another and answers each. */

// One thread is one core's work: libvips must not start threads of its own for every picture, nor
// keep pictures of other accounts in a cache.
sharp.concurrency(1);
sharp.cache(false);

muteThread();

let fonts: FontBook | undefined;

const port = parentPort;
if (port === null) throw new Error("this file is the entry of a rendering thread");
port.on("message", (message: TaskMessage) => {
  void answer(message);
});

async function answer(message: TaskMessage): Promise<void> {
  const { id } = message;
  let shown = -1;
  const onProgress = (percent: number): void => {
    if (percent === shown) return;
    shown = percent;
    send({ id, type: "progress", percent });
  };
  try {
    const result = await perform(message, onProgress);
    const bytes = "bytes" in result ? [result.bytes.buffer as ArrayBuffer] : [];
    send({ id, type: "done", result }, bytes);
  } catch (error) {
    send({ id, type: "failed", reason: error instanceof Error ? error.message : "unknown" });
  }
}

async function perform(
  message: TaskMessage,
  onProgress: (percent: number) => void,
): Promise<Tasks[TaskKind]["result"]> {
  const checkpoint = checkpointOf(message.flag);
  fonts ??= openFontBook();
  checkpoint();
  switch (message.kind) {
    case "image":
      return await renderImage(message.request, fonts, checkpoint);
    case "video":
      return await renderVideo(message.request, fonts, checkpoint, onProgress);
    case "speech":
      return await renderSpeech(message.request, checkpoint);
    case "music":
      return await renderMusic(message.request, checkpoint, onProgress);
  }
}

function send(reply: TaskReply, transfer: ArrayBuffer[] = []): void {
  port?.postMessage(reply, transfer);
}
