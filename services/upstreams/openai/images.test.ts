import { beforeAll, describe, expect, test } from "vitest";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import {
  bytesAnswer,
  formOf,
  redirectTo,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import { closedBaseUrl } from "../../../test/support/scripted-upstream.ts";
import { sampleMp3, sampleMp4, samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  reference,
  upstreamAt,
  upstreamKey,
} from "../media/world.fixture.ts";

let images: Buffer[];
beforeAll(async () => {
  images = [await samplePng(64, 48), await samplePng(80, 40)];
});

const start = () =>
  startScriptedMediaUpstream("openai", { images, video: sampleMp4(), sound: sampleMp3() });

describe("images of an OpenAI upstream", () => {
  test.each(["b64_json", "url"] as const)("are stored, verified, from %s", async (imagesAs) => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.wording.imagesAs = imagesAs;
    const request = { ...imageRequest, count: 2 };
    const { task, progress } = world.task({ upstream: upstreamAt(upstream.baseUrl), request });
    const outputs = await world.upstreams.generate(task);
    expect(outputs.map(({ width, height }) => [width, height])).toEqual([
      [64, 48],
      [80, 40],
    ]);
    for (const [index, output] of outputs.entries()) {
      expect(output).toMatchObject({ mimeType: "image/png", durationSeconds: 0 });
      expect(await world.stored(output.blobKey)).toEqual(images[index]);
      expect(output.sizeBytes).toBe(images[index]?.length);
    }
    const [seen] = upstream.requests;
    expect(seen?.path).toBe("/v1/images/generations");
    expect(seen?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
    expect(seen?.body).toEqual({
      ...{ model: "model-up", prompt: "a red boat", n: 2, size: "1024x1024" },
    });
    expect(progress).toEqual([49, 99]);
  });

  test("keep their order where some are in the answer and others are named", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const [one, two] = images as [Buffer, Buffer];
    upstream.always("GET /made/*", bytesAnswer(one, "image/png"));
    const url = `${upstream.baseUrl}/made/one`;
    const data = [{ url }, { b64_json: two.toString("base64") }, { url }];
    upstream.next("POST /images/generations", { kind: "json", body: { created: 1, data } });
    const request = { ...imageRequest, count: 3 };
    const { task, progress } = world.task({ upstream: upstreamAt(upstream.baseUrl), request });
    const outputs = await world.upstreams.generate(task);
    expect(outputs.map(({ width }) => width)).toEqual([64, 80, 64]);
    expect(progress).toEqual([33, 66, 99]);
  });

  test("are asked for in the caller's own words where there are some", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const request = { ...imageRequest, size: "auto", quality: "high" };
    const open = upstreamAt(upstream.baseUrl, "OPENAI", { apiKeyEnv: "" });
    await world.upstreams.generate(world.task({ upstream: open, request }).task);
    expect(upstream.requests[0]?.body).toMatchObject({ size: "auto", quality: "high" });
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined();
  });

  test("are edits of the references, in their order", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const jpeg = Buffer.from("bytes of the second");
    for (const references of [
      [reference(images[0] as Buffer)],
      [reference(images[0] as Buffer), reference(jpeg, "image/jpeg")],
    ]) {
      const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest, references };
      await world.upstreams.generate(world.task(asked).task);
    }
    const [one, two] = upstream.seen("POST /images/edits");
    const single = await formOf(one as NonNullable<typeof one>);
    expect(
      Object.fromEntries([...single].filter(([, value]) => typeof value === "string")),
    ).toEqual({
      ...{ model: "model-up", prompt: "a red boat", n: "1", size: "1024x1024" },
    });
    expect(Buffer.from(await (single.get("image") as File).arrayBuffer())).toEqual(images[0]);
    const several = (await formOf(two as NonNullable<typeof two>)).getAll("image[]") as File[];
    expect(several.map(({ name, type }) => [name, type])).toEqual([
      ["reference-1.png", "image/png"],
      ["reference-2.jpeg", "image/jpeg"],
    ]);
    expect(Buffer.from(await (several[1] as File).arrayBuffer())).toEqual(jpeg);
  });

  test("fail the job where a PNG is no PNG, and leave nothing", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const png = images[0] as Buffer;
    for (const bad of [Buffer.from("no PNG at all"), png.subarray(0, -30), sampleMp4()]) {
      upstream.wording.outputs = { ...upstream.wording.outputs, images: [bad] };
      for (const imagesAs of ["b64_json", "url"] as const) {
        upstream.wording.imagesAs = imagesAs;
        const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest };
        const work = world.upstreams.generate(world.task(asked).task);
        await expect(work).rejects.toMatchObject({ name: "GenerationError", fault: "failed" });
      }
    }
    expect(await world.storedKeys()).toEqual([]);
  });

  test.each<[string, object]>([
    ["too few", { data: [] }],
    ["none", {}],
    ["nothing in it", { data: [{}] }],
    ["an unusable URL", { data: [{ url: "http://" }] }],
  ])("fail the job where the answer has %s", async (_, body) => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /images/generations", { kind: "json", body });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("outside the upstream's origin are fetched without its key", async () => {
    await using upstream = await start();
    await using elsewhere = await start();
    await using world = await createWorld();
    elsewhere.always("GET /made/*", bytesAnswer(images[0] as Buffer, "image/png"));
    const data = [{ url: `${elsewhere.baseUrl}/made/image_9.png?sig=1` }];
    upstream.next("POST /images/generations", { kind: "json", body: { data } });
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest };
    await expect(world.upstreams.generate(world.task(asked).task)).resolves.toHaveLength(1);
    expect(elsewhere.requests[0]?.headers).not.toHaveProperty("authorization");

    // The same through a redirect within the origin.
    upstream.wording.imagesAs = "url";
    upstream.next("GET /made/*", redirectTo(`${elsewhere.baseUrl}/made/image_9.png`));
    await expect(world.upstreams.generate(world.task(asked).task)).resolves.toHaveLength(1);
    expect(elsewhere.requests).toHaveLength(2);
    expect(elsewhere.requests[1]?.headers).not.toHaveProperty("authorization");
  });

  test("are not fetched from addresses that are not public", async () => {
    await using upstream = await start();
    await using elsewhere = await start();
    await using world = await createWorld({
      fetcher: createGuardedFetcher({ allowPrivate: false }),
    });
    const data = [{ url: `${elsewhere.baseUrl}/made/image_9.png` }];
    upstream.next("POST /images/generations", { kind: "json", body: { data } });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    expect(elsewhere.requests).toEqual([]);
  });
});

describe("a refusal or a failure of an image upstream", () => {
  test.each<[number, string | undefined, string, number]>([
    [400, "moderation_blocked", "content_policy", 1],
    [403, "content_policy_violation", "content_policy", 1],
    [400, "bio_policy", "content_policy", 1],
    [400, "invalid_value", "failed", 1],
    [422, undefined, "failed", 1],
    [401, "invalid_api_key", "not_taken", 1],
    [402, undefined, "not_taken", 1],
    [403, undefined, "not_taken", 1],
    [404, "model_not_found", "not_taken", 1],
    [302, undefined, "failed", 1],
    [429, undefined, "not_taken", 1],
    [503, undefined, "not_taken", 1],
    [500, undefined, "broke_off", 1],
    // Its work meanwhile is unknown.
    [502, undefined, "unknown", 1],
    [504, undefined, "unknown", 1],
  ])("%i %s is %s after %i requests", async (status, code, fault, requests) => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /images/generations", {
      kind: "status",
      status,
      ...(code ? { code } : {}),
    });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault });
    expect(upstream.requests).toHaveLength(requests);
    const log = world.logLines.join("");
    for (const secret of ["SECRET WORDS", upstreamKey, "red boat", upstream.baseUrl]) {
      expect(log).not.toContain(secret);
    }
    const isDenied = fault === "not_taken" && [401, 402, 403, 404].includes(status);
    expect(log.includes("denies what is configured")).toBe(isDenied);
  });

  test.each([
    ["7", 7_000],
    ["Thu, 15 Jan 2026 12:00:20 GMT", 20_000],
    ["soon", undefined],
  ])("says for how long the upstream wants to be left alone: %s", async (text, retryAfterMs) => {
    await using upstream = await start();
    await using world = await createWorld();
    const busy = { kind: "status", status: 429, headers: { "retry-after": text } } as const;
    upstream.next("POST /images/generations", busy);
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest };
    const work = world.upstreams.generate(world.task(asked).task);
    const refusal = "too_many_requests";
    await expect(work).rejects.toMatchObject({ refusal, retryAfterMs, isCertain: true });
    // The job waits in the queue.
    expect(world.pauses).toEqual([]);
  });

  test("is not taken where no server listens, or where no address has the name", async () => {
    await using world = await createWorld();
    for (const baseUrl of [await closedBaseUrl(), "http://nobody.invalid/v1"]) {
      const { task } = world.task({ upstream: upstreamAt(baseUrl), request: imageRequest });
      const work = world.upstreams.generate(task);
      await expect(work).rejects.toMatchObject({ refusal: "unreachable", isCertain: true });
    }
    expect(world.pauses).toEqual([]);
  });

  test("comes after it was written down that a request goes out", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest };
    const noted = world.task({
      ...asked,
      sending: async () => expect(upstream.requests).toEqual([]),
    });
    await world.upstreams.generate(noted.task);
    const gone = world.task({ ...asked, sending: () => Promise.reject(new Error("lost")) });
    await expect(world.upstreams.generate(gone.task)).rejects.toMatchObject({ fault: "unknown" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("is unknown, and never repeated, where a connection broke with the request on it", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest };
    // A connection that served before must be no exception.
    await world.upstreams.generate(world.task(asked).task);
    upstream.always("POST /images/generations", { kind: "drop" });
    const work = world.upstreams.generate(world.task(asked).task);
    await expect(work).rejects.toMatchObject({ fault: "unknown" });
    expect(upstream.requests).toHaveLength(2);
  });

  test("is unknown where the answer does not come in time", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /images/generations", { kind: "hang" });
    const slow = upstreamAt(upstream.baseUrl, "OPENAI", { timeoutMs: 1_500n });
    const { task } = world.task({ upstream: slow, request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("is failed where the answer is no JSON", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /images/generations", { kind: "garbage" });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("is failed, before anything is sent, where the key is not set", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const keyless = upstreamAt(upstream.baseUrl, "OPENAI", { apiKeyEnv: "NOT_SET" });
    const { task } = world.task({ upstream: keyless, request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({
      refusal: "denied",
      isCertain: true,
    });
    expect(upstream.requests).toEqual([]);
    expect(world.logLines.join("")).toContain("NOT_SET");
  });

  test("gives way to the signal at once", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /images/generations", { kind: "hang" });
    const controller = new AbortController();
    const { signal } = controller;
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: imageRequest, signal };
    const work = world.upstreams.generate(world.task(asked).task);
    const seen = await upstream.request(1);
    const reason = new Error("the lease is lost");
    controller.abort(reason);
    await expect(work).rejects.toBe(reason);
    await seen.over;
    expect(seen.aborted).toBe(true);
  });
});
