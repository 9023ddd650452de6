import { expect, test } from "vitest";
import { imageRequest, musicRequest, reference, videoRequest } from "../media/world.fixture.ts";
import { seedOf, valuesOf } from "./values.ts";

const jobId = "job_1";

test("an image's values are what its caller asked for", () => {
  const request = { ...imageRequest, count: 2, size: "auto", aspectRatio: "3:2" };
  expect(valuesOf({ request, jobId, references: [] }, [])).toEqual({
    ...{ prompt: "a red boat", count: 2, width: 1024, height: 1024 },
    ...{ size: undefined, resolution: undefined, aspectRatio: "3:2", seed: seedOf(jobId) },
  });
});

test("the mask of an image is none of its references", () => {
  const images = ["https://files.test/1.png", "https://files.test/2.png"];
  const mask = "https://files.test/mask.png";
  const task = { jobId, references: [] };
  const values = valuesOf({ ...task, request: { ...imageRequest, hasMask: true } }, [
    ...images,
    mask,
  ]);
  expect(values).toMatchObject({ references: images, mask });
  const plain = valuesOf({ ...task, request: imageRequest }, images);
  expect(plain).toMatchObject({ references: images });
  expect("mask" in plain).toBe(false);
});

test("a video's have pixels, and its references", () => {
  const request = { ...videoRequest, mode: "i2v", audio: "stereo" } as const;
  const task = { request, jobId, references: [reference(Buffer.of(1))] };
  expect(valuesOf(task, ["https://files.test/1.png"])).toEqual({
    ...{ prompt: "waves", seconds: 6, resolution: "720p", aspectRatio: "16:9" },
    ...{ width: 1280, height: 720, audio: true, seed: seedOf(jobId) },
    references: ["https://files.test/1.png"],
  });
});

test("a piece of music's have its mode and its texts", () => {
  expect(valuesOf({ request: musicRequest, jobId, references: [] }, [])).toEqual({
    ...{ musicMode: "lyrics", title: "Tides", description: "slow", lyrics: "la la" },
    seed: seedOf(jobId),
  });
});

test("a seed is the job's own, the same at each attempt, of 31 bits", () => {
  const seeds = Array.from({ length: 1_000 }, (_, at) => seedOf(`job_${at}`));
  expect(new Set(seeds).size).toBe(1_000);
  expect(seedOf("job_1")).toBe(seeds[1]);
  for (const seed of seeds) expect(seed >= 0 && seed < 2 ** 31).toBe(true);
  expect(Math.max(...seeds)).toBeGreaterThan(2 ** 30);
});

test("what a caller chooses goes before what is derived", () => {
  const request = { ...musicRequest, seed: 7, negativePrompt: "drums" };
  const values = valuesOf({ request, jobId, references: [] }, []);
  expect(values).toMatchObject({ seed: 7, negativePrompt: "drums" });
});
