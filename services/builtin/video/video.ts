// Makes the video that a prompt asks for, from its words to the MP4. `worker.ts` calls it in a thread.

import { rename, rm, writeFile } from "node:fs/promises";
import type { VideoRequest, VideoResult } from "#common/words/builtin-models.ts";
import { paintCaption } from "../caption/caption.ts";
import { usualFramesPerSecond } from "../limits.ts";
import { type Mood, readMood } from "../paint/mood.ts";
import { createParticles } from "../paint/particles.ts";
import { createPicture, layOver, toSheet } from "../paint/planar.ts";
import type { FrameSize } from "../paint/raster.ts";
import { createScene } from "../paint/scene.ts";
import { createStage } from "../paint/stage.ts";
import { createRandom, type Random, seededText } from "../seed.ts";
import type { Checkpoint } from "../worker.ts";
import { openVideoEncoder } from "./encoder.ts";
import { mux } from "./mux.ts";
import { createReel, type Reel } from "./reel.ts";
import { composeSoundtrack } from "./soundtrack.ts";

/** Shares of the work in percent: painting the layers, then the frames. The rest is audio. */
const PREPARED_PERCENT = 8;
const PICTURES_PERCENT = 92;
/** The caption fades in within this time, a little later where a reference is the first frame. */
const CAPTION_FADE_SECONDS = 0.6;
const CAPTION_DELAY_SECONDS = 0.5;

/** All numbers that rendering a request needs. */
type VideoPlan = {
  readonly request: VideoRequest;
  readonly references: readonly Uint8Array[];
  readonly frame: FrameSize;
  readonly framesPerSecond: number;
  readonly frameCount: number;
  readonly mood: Mood;
  readonly random: Random;
};

/**
 * Renders the video that belongs to a prompt into `outFile`: a camera that travels through a painted scene, or animated references.
 * Frames are encoded one by one. `onProgress` gets percents. The file appears only when it is complete.
 */
export async function renderVideo(
  request: VideoRequest,
  checkpoint: Checkpoint,
  onProgress: (percent: number) => void,
): Promise<VideoResult> {
  const plan = planVideo(request);
  const stream = await encodePictures(plan, checkpoint, onProgress);
  const { durationSeconds, outFile } = request;
  checkpoint();
  const bytes = await mux({
    stream,
    framesPerSecond: plan.framesPerSecond,
    durationSeconds,
    sound: soundOf(plan),
    checkpoint,
  });
  checkpoint();
  await writeWhole(outFile, bytes);
  onProgress(100);
  const { width, height } = plan.frame;
  const seconds = plan.frameCount / plan.framesPerSecond;
  return { width, height, durationSeconds: seconds, sizeBytes: bytes.byteLength };
}

function soundOf({ request, mood, random }: VideoPlan): Float32Array[] {
  const { audio, durationSeconds } = request;
  if (audio === "none") return [];
  const { left, right } = composeSoundtrack(mood, durationSeconds, random.fork("sound"));
  if (audio === "stereo") return [left, right];
  return [left.map((sample, index) => (sample + (right[index] as number)) / 2)];
}

/** Writes beside the file and renames, so that a reader never finds half of it. */
async function writeWhole(file: string, bytes: Uint8Array): Promise<void> {
  const part = `${file}.part`;
  try {
    await writeFile(part, bytes);
    await rename(part, file);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

function planVideo(request: VideoRequest): VideoPlan {
  const { prompt, width, height, durationSeconds, references = [] } = request;
  const framesPerSecond = request.fps ?? usualFramesPerSecond;
  const random = createRandom(seededText(["video", prompt], request.seed));
  return {
    request,
    references,
    frame: { width, height },
    framesPerSecond,
    frameCount: Math.max(1, Math.round(durationSeconds * framesPerSecond)),
    mood: readMood(prompt, random.fork("mood")),
    random,
  };
}

async function encodePictures(
  plan: VideoPlan,
  checkpoint: Checkpoint,
  onProgress: (percent: number) => void,
): Promise<Uint8Array> {
  const { frame, framesPerSecond, frameCount } = plan;
  const reel = await createPictures(plan, checkpoint);
  const caption = await paintCaption(plan.request.prompt, frame, plan.mood.palette);
  const captionSheet = toSheet(caption, "yuv420");
  onProgress(PREPARED_PERCENT);
  const picture = createPicture(frame, "yuv420");
  await using encoder = await openVideoEncoder(frame, framesPerSecond);
  for (let index = 0; index < frameCount; index++) {
    checkpoint();
    reel.paint(picture, index);
    layOver(picture, captionSheet, 0, Math.round(256 * captionOpacity(plan, index)));
    encoder.add(picture.data);
    const share = (index + 1) / frameCount;
    onProgress(Math.floor(PREPARED_PERCENT + share * (PICTURES_PERCENT - PREPARED_PERCENT)));
  }
  return encoder.finish();
}

async function createPictures(plan: VideoPlan, checkpoint: Checkpoint): Promise<Reel> {
  const { frame, framesPerSecond, frameCount, mood, random, references } = plan;
  if (references.length > 0) {
    const particles = createParticles(mood.particles, frame, mood.palette, random.fork("air"));
    const reel = { references, frame, frameCount, framesPerSecond, particles, random, checkpoint };
    return await createReel(reel);
  }
  const short = Math.min(frame.width, frame.height);
  const scene = createScene(mood, frame, frameCount / framesPerSecond, random);
  return createStage(scene, "yuv420", short, framesPerSecond, checkpoint);
}

/** The opacity of the caption: 0 to 1. First and last frames that the caller gave are not covered. */
function captionOpacity(plan: VideoPlan, index: number): number {
  const seconds = index / plan.framesPerSecond;
  const length = plan.frameCount / plan.framesPerSecond;
  const fade = Math.min(CAPTION_FADE_SECONDS, length * 0.15);
  const delay = plan.references.length > 0 ? Math.min(CAPTION_DELAY_SECONDS, length * 0.1) : 0;
  const rise = Math.min(Math.max((seconds - delay) / fade, 0), 1);
  if (plan.references.length < 2) return rise;
  const left = (plan.frameCount - 1 - index) / plan.framesPerSecond;
  return Math.min(rise, Math.min(Math.max((left - delay) / fade, 0), 1));
}
