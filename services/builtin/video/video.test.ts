import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { VideoRequest } from "#common/words/builtin-models.ts";
import { decodeFrames, haveFfmpeg, meanDifference, probeStreams } from "../testing/ffmpeg.ts";
import { readMp4 } from "../testing/probe.ts";
import { renderVideo } from "./video.ts";

const canDecode = haveFfmpeg();
const WIDTH = 160;
const HEIGHT = 90;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "builtin-video-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

let made = 0;
async function render(request: Partial<VideoRequest>) {
  const outFile = join(folder, `${made++}.mp4`);
  const percents: number[] = [];
  const size = { width: WIDTH, height: HEIGHT };
  const whole = { prompt: "a lake", ...size, durationSeconds: 1, audio: "none", outFile } as const;
  const result = await renderVideo(
    { ...whole, ...request },
    () => {},
    (percent) => {
      percents.push(percent);
    },
  );
  const bytes = await readFile(request.outFile ?? outFile);
  return { result, bytes: new Uint8Array(bytes), file: outFile, percents };
}

/** An image with a dark and a bright half, as PNG and as the RGB pixels of a frame. */
async function halves(left: string, right: string) {
  const half = (background: string) => ({
    create: { width: 80, height: 90, channels: 3, background } as const,
  });
  const whole = sharp({ create: { width: WIDTH, height: HEIGHT, channels: 3, background: right } });
  const png = await whole
    .composite([{ input: await sharp(half(left)).png().toBuffer(), left: 0, top: 0 }])
    .png()
    .toBuffer();
  const pixels = await sharp(png).removeAlpha().raw().toBuffer();
  return { png: new Uint8Array(png), pixels: new Uint8Array(pixels) };
}

describe("renderVideo", () => {
  test("is H.264 that plays while it loads, of the size and length asked for", async () => {
    const { bytes, result, percents } = await render({ durationSeconds: 2, fps: 12 });
    const facts = readMp4(bytes);
    expect(facts.fastStart).toBe(true);
    expect(facts.durationSeconds).toBe(2);
    expect(facts.tracks).toHaveLength(1);
    expect(facts.tracks[0]).toMatchObject({
      handler: "vide",
      codec: "avc1",
      width: WIDTH,
      height: HEIGHT,
      sampleCount: 24,
      durationSeconds: 2,
    });
    expect(result).toEqual({
      width: WIDTH,
      height: HEIGHT,
      durationSeconds: 2,
      sizeBytes: bytes.length,
    });
    expect(percents.at(-1)).toBe(100);
    expect(percents).toEqual(percents.toSorted((one, other) => one - other));
  });

  test("can be entered at every third second, and a player is told so", async () => {
    const { bytes } = await render({ durationSeconds: 7, fps: 4 });
    expect(readMp4(bytes).tracks[0]?.keySamples).toEqual([1, 13, 25]);
  });

  test.skipIf(!canDecode)("shows the same picture to a player that jumps there", async () => {
    const { file } = await render({ durationSeconds: 7, fps: 4 });
    const [played] = decodeFrames(file, WIDTH, HEIGHT).slice(20);
    const [jumped] = decodeFrames(file, WIDTH, HEIGHT, 5);
    expect(jumped && Buffer.compare(jumped, played as Uint8Array)).toBe(0);
  });

  test.each([
    ["mono", 1],
    ["stereo", 2],
  ] as const)("%s sound is AAC, no longer than the pictures", async (audio, channels) => {
    const facts = readMp4((await render({ audio, durationSeconds: 2, fps: 8 })).bytes);
    const sound = facts.tracks.find(({ handler }) => handler === "soun");
    expect(sound).toMatchObject({ codec: "mp4a", channels });
    expect(sound?.durationSeconds).toBeGreaterThan(1.9);
    expect(sound?.durationSeconds).toBeLessThanOrEqual(2);
    expect(facts.durationSeconds).toBe(2);
  });

  test("is the same for the same request, bears no time, and differs with the prompt", async () => {
    const request = { audio: "stereo", fps: 6 } as const;
    const first = await render(request);
    expect(readMp4(first.bytes).createdAt).toBe(0);
    expect((await render(request)).bytes).toEqual(first.bytes);
    const other = await render({ ...request, prompt: "a pond" });
    expect(other.bytes).not.toEqual(first.bytes);
  });

  test("nothing is left behind wherever it is stopped", async () => {
    const threads = new Set<Worker>();
    const watch = (worker: Worker): void => {
      threads.add(worker);
      worker.once("exit", () => threads.delete(worker));
    };
    process.on("worker", watch);
    onTestFinished(() => {
      process.off("worker", watch);
    });
    const outFile = join(folder, "stopped.mp4");
    const size = { width: WIDTH, height: HEIGHT };
    const request = { prompt: "x", ...size, durationSeconds: 1, audio: "mono", outFile } as const;
    let steps = 0;
    await renderVideo(
      request,
      () => steps++,
      () => {},
    );
    await rm(outFile);
    expect(steps).toBeGreaterThan(30);
    for (const stop of [1, 5, Math.round(steps / 2), steps - 2, steps - 1, steps]) {
      let left = stop;
      const checkpoint = (): void => {
        if (--left === 0) throw new Error("stop");
      };
      const stopped = renderVideo(request, checkpoint, () => {});
      await expect(stopped).rejects.toThrow("stop");
    }
    expect((await readdir(folder)).filter((name) => name.startsWith("stopped"))).toEqual([]);
    // The audio encoder's own threads have ended.
    await expect.poll(() => threads.size).toBe(0);
    // The encoder, which all videos of a thread share, still works.
    expect(readMp4((await render({ fps: 2 })).bytes).tracks[0]?.sampleCount).toBe(2);
  });

  test.skipIf(!canDecode)("ffprobe and ffmpeg agree", async () => {
    const { file } = await render({ audio: "stereo", fps: 12, width: 166, height: 94 });
    const [video, sound] = probeStreams(file);
    expect(video).toMatchObject({
      codec_name: "h264",
      pix_fmt: "yuv420p",
      color_space: "bt709",
      color_range: "tv",
      width: 166,
      height: 94,
      nb_frames: "12",
    });
    expect(sound).toMatchObject({ codec_name: "aac", sample_rate: "44100", channels: 2 });
    const frames = decodeFrames(file, 166, 94);
    expect(frames).toHaveLength(12);
  });

  test.skipIf(!canDecode).each(["the sea", "a city", "abstract", "a planet", "a forest"])(
    "%s moves from frame to frame",
    async (prompt) => {
      const frames = decodeFrames((await render({ prompt, fps: 12 })).file, WIDTH, HEIGHT);
      const first = frames[0] as Uint8Array;
      expect(meanDifference(first, frames[11] as Uint8Array)).toBeGreaterThan(1.5);
      for (let index = 1; index < frames.length; index++) {
        const before = frames[index - 1] as Uint8Array;
        expect(meanDifference(before, frames[index] as Uint8Array)).toBeGreaterThan(0.02);
      }
    },
  );

  test.skipIf(!canDecode)("one reference is the first frame, then it moves", async () => {
    const { png, pixels } = await halves("#102040", "#f0c060");
    const { file } = await render({ references: [png], durationSeconds: 2, fps: 12 });
    const frames = decodeFrames(file, WIDTH, HEIGHT);
    expect(meanDifference(frames[0] as Uint8Array, pixels)).toBeLessThan(5);
    expect(meanDifference(frames[0] as Uint8Array, frames[12] as Uint8Array)).toBeGreaterThan(4);
  });

  test.skipIf(!canDecode)("the last of two references is the last frame", async () => {
    const one = await halves("#102040", "#f0c060");
    const other = await halves("#e04080", "#204020");
    const { file } = await render({ references: [one.png, other.png], fps: 12 });
    const frames = decodeFrames(file, WIDTH, HEIGHT);
    expect(meanDifference(frames[0] as Uint8Array, one.pixels)).toBeLessThan(5);
    expect(meanDifference(frames[11] as Uint8Array, other.pixels)).toBeLessThan(5);
    expect(meanDifference(frames[0] as Uint8Array, other.pixels)).toBeGreaterThan(50);
  });
});
