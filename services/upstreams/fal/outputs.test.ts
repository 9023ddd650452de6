import { beforeAll, describe, expect, test } from "vitest";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import { reply } from "../../../test/support/upstreams/double.ts";
import { type FalDouble, startFal } from "../../../test/support/upstreams/fal.ts";
import { falCalls, modelCall } from "../by-template/calls.fixture.ts";
import type { GenerationTask } from "../media/port.ts";
import { samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  reference,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "../media/world.fixture.ts";

let png: Buffer;
beforeAll(async () => {
  png = await samplePng();
});

const start = () => startFal({ key: upstreamKey });
const at = ({ origin }: FalDouble) => upstreamAt(origin, "FAL");
const imageAt = (fal: FalDouble, more: Partial<GenerationTask> = {}) => ({
  ...{ upstream: at(fal), request: imageRequest, call: falCalls.image },
  ...more,
});
const i2v = { ...videoRequest, mode: "i2v", firstLastFrame: true } as const;
const videoAt = (fal: FalDouble, more: Partial<GenerationTask> = {}) => ({
  ...{ upstream: at(fal), request: i2v, call: falCalls.video },
  references: [reference(png), reference(png)],
  ...more,
});

describe("what fal has made", () => {
  test("is fetched again where it breaks off", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.files.next("file", { kind: "file", cutAfter: 40 });
    const outputs = await world.upstreams.generate(world.task(imageAt(fal)).task);
    expect(await world.stored(outputs[0]?.blobKey ?? "")).toEqual(fal.outputs.images[0]);
  });

  test("that stays cut is unknown, and can be fetched by a later attempt", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.files.always("file", { kind: "file", cutAfter: 40 });
    const { task } = world.task(videoAt(fal));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    expect(await world.storedKeys()).toEqual([]);
  });

  test("is known by its bytes, and not by what its header says", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.files.next("file", { kind: "file", type: "text/html" });
    await expect(world.upstreams.generate(world.task(imageAt(fal)).task)).resolves.toHaveLength(1);
    fal.plan({ makes: "sound" }, { makes: "image" });
    const image = imageAt(fal, { call: modelCall("fal-ai/flux/dev", {}, "audio.url") });
    await expect(world.upstreams.generate(world.task(image).task)).rejects.toMatchObject({
      fault: "failed",
    });
    const video = videoAt(fal, { call: modelCall("fal-ai/flux/dev", {}, "images[*].url") });
    await expect(world.upstreams.generate(world.task(video).task)).rejects.toMatchObject({
      fault: "failed",
    });
  });

  test("is too little, or nowhere", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const image = { url: fal.files.add({ bytes: png, type: "image/png" }) };
    const outputs = [{ images: [image] }, { images: [] }, { images: [{ url: 7 }, { url: null }] }];
    for (const output of [...outputs, { images: [{ url: "nowhere:" }, { url: "nowhere:" }] }]) {
      fal.plan({ output: () => output });
      const two = { ...imageRequest, count: 2 };
      const { task } = world.task(imageAt(fal, { request: two }));
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    }
    expect(fal.files.requests).toHaveLength(0);
  });

  test("is followed to where it is redirected, without the key", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const url = fal.files.add({ bytes: png, type: "image/png" });
    fal.files.next("file", reply(302, {}, { location: url }));
    await expect(world.upstreams.generate(world.task(imageAt(fal)).task)).resolves.toHaveLength(1);
    for (const { headers } of fal.files.requests) expect(headers.authorization).toBeUndefined();
  });

  test("is fetched from private addresses only at the upstream's own origin", async () => {
    await using fal = await start();
    await using world = await createWorld({
      fetcher: createGuardedFetcher({ allowPrivate: false }),
    });
    const { task } = world.task(imageAt(fal));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    expect(fal.files.requests).toHaveLength(0);
    // The same for the place where references are put.
    await expect(world.upstreams.generate(world.task(videoAt(fal)).task)).rejects.toMatchObject({
      fault: "failed",
    });
    expect(fal.files.requests).toHaveLength(0);
    // Within the origin, where the key is not sent either.
    fal.plan({ output: () => ({ images: [{ url: `${fal.origin}/made.png` }] }) });
    await expect(world.upstreams.generate(world.task(imageAt(fal)).task)).rejects.toMatchObject({
      fault: "failed",
    });
    const asked = fal.requests.find(({ path }) => path === "/made.png");
    expect(asked?.headers.authorization).toBeUndefined();
  });
});
