// Drives the built-in models of images, video, music and speech as if they were an upstream. services/builtin does the work
// itself.

import { createReadStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { ofDisk } from "#kit/base/disk-errors.ts";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { DriverContext } from "../media/context.ts";
import { videoDimensions } from "../media/dimensions.ts";
import { failed } from "../media/faults.ts";
import { loadReferences } from "../media/load-references.ts";
import {
  type GeneratedOutput,
  GenerationError,
  type GenerationRequest,
  type GenerationTask,
  NotTakenError,
  type SpeechTask,
} from "../media/port.ts";
import { musicOutput, storeImage, storeStream, videoOutput } from "../media/store-output.ts";
import { builtin } from "./capabilities.ts";

type Asked<Kind> = Extract<GenerationRequest, { kind: Kind }>;

/**
 * Generates in this process. After an abort it ends once the renderer has stopped, so that nothing stays in the temporary folder. The
 * renderer's output is verified and stored like any upstream's.
 */
export async function generateBuiltin(
  context: DriverContext,
  task: GenerationTask,
): Promise<GeneratedOutput[]> {
  try {
    return await render(context, task);
  } catch (error) {
    const cause = ofDisk(error instanceof GenerationError ? error.cause : error);
    if (!isRefusal(cause, ErrorReason.SERVICE_UNAVAILABLE)) throw error;
    // A disk is full: here, or that of the files. The job is rendered again later, and loses no attempt.
    throw new NotTakenError("unavailable", { isCertain: true, cause });
  }
}

function render(context: DriverContext, task: GenerationTask): Promise<GeneratedOutput[]> {
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

/** Speaks in this process. */
export async function speakBuiltin(context: DriverContext, task: SpeechTask): Promise<Uint8Array> {
  const { accountId, text, voice, language, speed, signal } = task;
  const format = builtin.serves.speech.formats.find((one) => one === task.format);
  if (!format) throw failed(`${task.format} is not made here`);
  const request = { text, voice, language, speed, format };
  const { bytes } = await context.renderer.speech(request, {
    accountId,
    signal,
    onStart: () => task.sending(),
  });
  await task.reach(bytes.length);
  task.hear?.(bytes);
  return bytes;
}

async function renderImages(
  context: DriverContext,
  task: GenerationTask,
  { prompt, width, height, count, seed: first = 0 }: Asked<"image">,
): Promise<GeneratedOutput[]> {
  const references = await bytesOf(task);
  const outputs: GeneratedOutput[] = [];
  for (let index = 0; index < count; index++) {
    const request = { prompt, width, height, references, seed: first + index };
    const { bytes } = await context.renderer.image(request, task);
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
  const { prompt, durationSeconds, audio, seed } = request;
  const size = videoDimensions(request.resolution, request.aspectRatio, task.references[0]);
  const references = await bytesOf(task);
  const folder = await mkdtemp(join(context.tempDir, "video-"));
  try {
    const outFile = join(folder, "video.mp4");
    const asked = {
      prompt,
      ...size,
      durationSeconds,
      references,
      audio,
      outFile,
      ...given({ seed }),
    };
    await context.renderer.video(asked, task, progressOf(task));
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
  { mode, title, description, lyrics, seed }: Asked<"music">,
): Promise<GeneratedOutput[]> {
  const words = { mode, title, description, lyrics, ...given({ seed }) };
  const { bytes } = await context.renderer.music(words, task, progressOf(task));
  return [await storeStream(task, musicOutput, inOnePiece(bytes))];
}

/** The seed, where the caller sent one. */
function given({ seed }: { seed: number | undefined }): { seed?: number } {
  return seed === undefined ? {} : { seed };
}

/** Rendered output is not stored yet, so progress is at most 99. */
function progressOf(task: GenerationTask): (percent: number) => void {
  return (percent) => task.progress(Math.min(99, percent));
}

async function bytesOf({ references, signal }: GenerationTask): Promise<Uint8Array[]> {
  return (await loadReferences(references, signal)).map(({ bytes }) => bytes);
}

async function* inOnePiece(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
