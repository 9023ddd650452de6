import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { videoDimensions } from "../builtin/index.ts";
import type { DriverContext } from "./context.ts";
import { loadReferences } from "./multipart.ts";
import type { GeneratedOutput, GenerationRequest, GenerationTask, SpeechTask } from "./port.ts";
import { musicOutput, storeImage, storeStream, videoOutput } from "./verify-output.ts";

type Asked<Kind> = Extract<GenerationRequest, { kind: Kind }>;

/**
 * Generates in this process. After an abort it ends once the renderer has stopped, so that nothing stays in the temporary
 * folder. What the renderer makes is verified and stored like anybody's.
 */
export function generateBuiltin(
  context: DriverContext,
  task: GenerationTask,
): Promise<GeneratedOutput[]> {
  const { request } = task;
  switch (request.kind) {
    case "image":
      return renderImages(context, task, request);
    case "video":
      return renderVideo(context, task, request);
    case "music":
      return renderMusic(context, task, request);
  }
}

/** Speaks in this process; accounts take turns at the threads for that, and each has one at most. */
export async function speakBuiltin(context: DriverContext, task: SpeechTask): Promise<Uint8Array> {
  const { accountId, text, voice, language, speed, signal } = task;
  using _turn = await context.speaking.take(accountId, signal);
  task.sending();
  const request = { text, voice, speed, ...(language === undefined ? {} : { language }) };
  const { bytes } = await context.renderer.speech(request, { signal });
  return bytes;
}

async function renderImages(
  context: DriverContext,
  task: GenerationTask,
  { prompt, width, height, count }: Asked<"image">,
): Promise<GeneratedOutput[]> {
  const { signal } = task;
  const references = await bytesOf(task);
  const outputs: GeneratedOutput[] = [];
  for (let seed = 0; seed < count; seed++) {
    const request = { prompt, width, height, references, seed };
    const { bytes } = await context.renderer.image(request, { signal });
    outputs.push(await storeImage(context, task, bytes));
    task.progress(Math.floor((99 * outputs.length) / count));
  }
  return outputs;
}

async function renderVideo(
  context: DriverContext,
  task: GenerationTask,
  request: Asked<"video">,
): Promise<GeneratedOutput[]> {
  const { signal } = task;
  const { prompt, durationSeconds, audio } = request;
  const size = videoDimensions(request.resolution, request.aspectRatio, task.references[0]);
  const references = await bytesOf(task);
  const folder = await mkdtemp(join(context.tempDir, "video-"));
  try {
    const outFile = join(folder, "video.mp4");
    const asked = { prompt, ...size, durationSeconds, references, audio, outFile };
    await context.renderer.video({ ...asked, onProgress: progressOf(task) }, { signal });
    const file = createReadStream(outFile);
    try {
      return [await storeStream(task, videoOutput(durationSeconds), file)];
    } finally {
      file.destroy();
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function renderMusic(
  context: DriverContext,
  task: GenerationTask,
  { mode, title, description, lyrics }: Asked<"music">,
): Promise<GeneratedOutput[]> {
  const { signal } = task;
  const words = {
    ...(description === undefined ? {} : { description }),
    ...(lyrics === undefined ? {} : { lyrics }),
  };
  const options = { signal, onProgress: progressOf(task) };
  const { bytes } = await context.renderer.music({ mode, title, ...words }, options);
  return [await storeStream(task, musicOutput, inOnePiece(bytes))];
}

/** What is rendered is not yet stored: 99 at most. */
function progressOf(task: GenerationTask): (percent: number) => void {
  return (percent) => task.progress(Math.min(99, percent));
}

async function bytesOf({ references, signal }: GenerationTask): Promise<Uint8Array[]> {
  return (await loadReferences(references, signal)).map(({ bytes }) => bytes);
}

async function* inOnePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
