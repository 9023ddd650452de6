import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sampleMp3, sampleMp4, samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { startScriptedMediaUpstream } from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";
import { startRunning, tempFolder, type Variables } from "./process.ts";

const key = "key-of-the-stopping-tests";

describe("SIGTERM with an image in the making, whose upstream answers once or never", () => {
  test("is waited for: the image is stored, and charged", async () => {
    await using world = await startPainting({ GENMESH_DRAIN_MS: "20000" });
    const statusUrl = await world.draw();
    await world.upstream.request(1);
    world.mesh.kill("SIGTERM");
    await until("it stops", () => world.mesh.stderr().includes('"msg":"stopping"'), {
      withinMs: 60_000,
    });
    world.answer();
    expect(await world.mesh.ended).toEqual({ code: 0, signal: null });
    const job = await world.afterRestart(statusUrl);
    expect(job).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect(world.upstream.requests).toHaveLength(1);
  });

  test("and is not ready in time, where the catalog says fail: failed, not charged, and told why", async () => {
    await using world = await startPainting({ GENMESH_DRAIN_MS: "300" }, { lostAnswer: "fail" });
    const statusUrl = await world.draw();
    await world.upstream.request(1);
    world.mesh.kill("SIGTERM");
    expect(await world.mesh.ended).toEqual({ code: 0, signal: null });
    const job = await world.afterRestart(statusUrl);
    expect(job).toMatchObject({
      status: "failed",
      creditsCharged: 0,
      error: { code: "generation_failed", message: expect.stringContaining("Nothing was charged") },
    });
    expect(world.upstream.requests).toHaveLength(1);
    world.answer();
  });

  test("and is not ready in time: asked for again after the start, and charged once", async () => {
    await using world = await startPainting({ GENMESH_DRAIN_MS: "300" });
    const statusUrl = await world.draw();
    await world.upstream.request(1);
    world.mesh.kill("SIGTERM");
    expect(await world.mesh.ended).toEqual({ code: 0, signal: null });
    const job = await world.afterRestart(statusUrl);
    expect(job).toMatchObject({ status: "completed", creditsCharged: 1 });
    expect(world.upstream.requests).toHaveLength(2);
    world.answer();
  });
});

/** A mesh with images from an upstream that answers when the test says so. */
async function startPainting(env: Variables, ofModel: { lostAnswer?: string } = {}) {
  await using stack = new AsyncDisposableStack();
  const outputs = { images: [await samplePng(64, 64)], video: sampleMp4(), sound: sampleMp3(3) };
  const upstream = stack.use(await startScriptedMediaUpstream("openai", outputs));
  const folder = stack.use(await tempFolder());
  const file = join(folder.path, "catalog.json");
  const paint = { protocol: "openai", baseUrl: upstream.baseUrl, apiKeyEnv: "UP_KEY" };
  const model = { id: "image", kind: "image", upstream: "paint", creditPrice: 1, sizes: ["64x64"] };
  const catalog = {
    upstreams: { paint },
    models: [{ ...model, ...ofModel, availableAspectRatios: ["auto", "1:1"] }],
  };
  await writeFile(file, JSON.stringify(catalog));
  const start = () =>
    startRunning({
      GENMESH_DATA_DIR: join(folder.path, "data"),
      GENMESH_CATALOG: file,
      GENMESH_BOOTSTRAP_API_KEY: key,
      UP_KEY: "up",
      ...env,
    });
  const gate = Promise.withResolvers<void>();
  upstream.next("POST /images/generations", {
    kind: "custom",
    async handle(_seen, response) {
      await gate.promise;
      const b64_json = Buffer.from(outputs.images[0] ?? []).toString("base64");
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ created: 1, data: [{ b64_json }] }));
    },
  });
  const mesh = stack.use(await start());
  const owned = stack.move();
  return {
    mesh,
    upstream,
    answer: () => gate.resolve(),
    /** Answers the path of the job's state. */
    async draw(): Promise<string> {
      const answer = await fetch(`${mesh.baseUrl}/images/generations`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({ model: "image", prompt: "a boat", size: "64x64" }),
      });
      expect(answer.status).toBe(202);
      return new URL((await answer.json()).statusUrl).pathname;
    },
    /** The job in the answer of a new process on the same data. */
    async afterRestart(path: string) {
      await using again = await start();
      const headers = { authorization: `Bearer ${key}` };
      const ended = async () => {
        const job = await (await fetch(again.origin + path, { headers })).json();
        return job.terminal ? job : undefined;
      };
      return await until("the job's end", ended, { withinMs: 60_000 });
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
