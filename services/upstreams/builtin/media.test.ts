import { readdir } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { closedBaseUrl } from "../../../test/support/scripted-upstream.ts";
import { samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
  reference,
  speechTask,
  upstreamAt,
  videoRequest,
} from "../media/world.fixture.ts";

const upstream = upstreamAt("", "BUILTIN", { apiKeyEnv: "" });

describe("the builtin upstream", () => {
  test("makes as many different images as asked for, from references too", async () => {
    await using world = await createWorld();
    const request = { ...imageRequest, count: 3, width: 320, height: 192 };
    const references = [reference(await samplePng())];
    const { task, progress } = world.task({ upstream, request, references });
    const outputs = await world.upstreams.generate(task);
    expect(outputs).toHaveLength(3);
    for (const output of outputs) {
      expect(output).toMatchObject({ mimeType: "image/png", width: 320, height: 192 });
    }
    expect(new Set(outputs.map(({ sha256 }) => sha256)).size).toBe(3);
    expect(progress).toEqual([33, 66, 99]);
  });

  test("makes a video that measures up, and leaves no file of its own", async () => {
    await using world = await createWorld();
    const request = {
      ...videoRequest,
      durationSeconds: 1,
      resolution: "96p",
      audio: "stereo",
    } as const;
    const { task, progress } = world.task({ upstream, request });
    const [output] = await world.upstreams.generate(task);
    expect(output).toMatchObject({ mimeType: "video/mp4", width: 170, height: 96 });
    expect(output?.durationSeconds).toBeCloseTo(1, 1);
    expect((await world.stored(output?.blobKey ?? "")).length).toBe(output?.sizeBytes);
    expect(progress.length).toBeGreaterThan(0);
    expect(Math.max(...progress)).toBeLessThanOrEqual(99);
    expect(await readdir(world.tempDir)).toEqual([]);
  });

  test("leaves nothing of a video that is called off", async () => {
    await using world = await createWorld();
    const controller = new AbortController();
    const reason = new Error("handed back");
    const { task } = world.task({
      ...{ upstream, request: { ...videoRequest, resolution: "480p" } },
      signal: controller.signal,
      progress: () => controller.abort(reason),
    });
    await expect(world.upstreams.generate(task)).rejects.toBe(reason);
    expect(await readdir(world.tempDir)).toEqual([]);
    expect(await world.storedKeys()).toEqual([]);
  });

  test("makes music and speech", async () => {
    await using world = await createWorld();
    const { task, resumeIds, progress } = world.task({ upstream, request: musicRequest });
    const [output] = await world.upstreams.generate(task);
    expect(output).toMatchObject({ mimeType: "audio/mpeg", width: 0, height: 0 });
    expect(output?.durationSeconds).toBeGreaterThan(5);
    // As its row in the table of protocols says.
    expect(resumeIds).toEqual([]);
    expect(progress.length).toBeGreaterThan(0);
    const { jobId, upstreamModel, signal } = task;
    const cancel = {
      jobId,
      kind: "music",
      upstreamModel,
      upstream,
      resumeId: "task",
      signal,
    } as const;
    expect(await world.upstreams.cancel(cancel)).toBe(false);
    const spoken = await world.upstreams.speak(speechTask([upstream]));
    expect(spoken.durationSeconds).toBeGreaterThan(0.3);
    expect(spoken.bytes.length).toBeGreaterThan(1000);
  });

  test("speaks where the upstream before it cannot be reached", async () => {
    await using world = await createWorld();
    const upstreams = [upstreamAt(await closedBaseUrl()), upstream];
    const spoken = await world.upstreams.speak(speechTask(upstreams));
    expect(spoken.durationSeconds).toBeGreaterThan(0.3);
  });

  test("fails what it cannot make", async () => {
    await using world = await createWorld();
    for (const request of [
      { ...imageRequest, width: 100_000 },
      { ...videoRequest, resolution: "8k" },
    ]) {
      const work = world.upstreams.generate(world.task({ upstream, request }).task);
      await expect(work).rejects.toMatchObject({ name: "GenerationError", fault: "failed" });
    }
  });
});

test.each(["OPENAI", "CHAT_COMPLETIONS"] as const)(
  "music at an upstream of protocol %s fails",
  async (protocol) => {
    await using world = await createWorld();
    const other = upstreamAt(await closedBaseUrl(), protocol);
    const work = world.upstreams.generate(
      world.task({ upstream: other, request: musicRequest }).task,
    );
    await expect(work).rejects.toMatchObject({ fault: "failed" });
  },
);
