import { afterAll, expect, test } from "vitest";
import { measuredLookMs } from "../../services/media/limits.ts";
import { samplePng } from "../../services/upstreams/media/samples.fixture.ts";
import { startScriptedMediaUpstream } from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";
import type { CatalogObject } from "./catalog.ts";
import { type Document, ended, heldImages, pathOf, submit } from "./media-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const png = await samplePng(64, 64);
const media = await startScriptedMediaUpstream("openai", {
  ...{ images: [png], video: Buffer.alloc(0), sound: Buffer.alloc(0) },
});
const catalog = (usual: CatalogObject): CatalogObject => {
  const image = {
    kind: "image",
    creditPrice: 1,
    sizes: ["64x64"],
    availableAspectRatios: ["auto"],
  };
  const one = {
    ...{ protocol: "openai", baseUrl: media.baseUrl, apiKeyEnv: "UP_KEY", maxConcurrent: 1 },
  };
  return {
    ...usual,
    upstreams: { ...usual.upstreams, one },
    models: [...usual.models, { ...image, id: "one-image", upstream: "one" }],
  };
};
const world = await startWorld({ catalog });
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await media[Symbol.asyncDispose]();
});
ownWorldOnly();

const create = "POST /images/generations";
const image = { model: "one-image", prompt: "a boat" };

test("a queued job says its place, and when it may begin once jobs of its kind were completed", async () => {
  const caller = await world.caller({ credits: 10n });
  const other = await world.caller({ credits: 10n });
  await ended(caller, await submit(caller, "images", image));
  const held = heldImages(png);
  media.next(create, held.behaviour);
  const running = await submit(caller, "images", image);
  await until("the request upstream", () => media.seen(create).length === 2);
  const mine = await submit(caller, "images", image);
  const theirs = await submit(other, "images", image);
  // An earlier look at the first job found no durations. Its result is dropped after this time.
  await world.later(measuredLookMs);
  const look = async (asker: typeof caller, job: Document) =>
    (await asker.get(pathOf(asker, job.statusUrl))).json;
  const [first, second, begun] = [
    await look(other, theirs),
    await look(caller, mine),
    await look(caller, running),
  ];
  expect(first).toMatchObject({ status: "queued", queuePosition: 1 });
  expect(second).toMatchObject({ status: "queued", queuePosition: 2 });
  expect(second.estimatedStartAt).toBe(new Date(Date.parse(second.estimatedStartAt)).toISOString());
  expect(Date.parse(second.estimatedStartAt)).toBeGreaterThan(Date.parse(second.createdAt));
  expect(begun).not.toHaveProperty("queuePosition");
  expect(begun).not.toHaveProperty("estimatedStartAt");
  const [listed] = (await caller.get("/jobs?status=queued")).json.data;
  expect(listed).toMatchObject({ id: mine.id, queuePosition: 2 });
  held.open();
  const done = await ended(caller, mine);
  expect(done).not.toHaveProperty("queuePosition");
  expect(done).not.toHaveProperty("estimatedStartAt");
  await ended(other, theirs);
});
