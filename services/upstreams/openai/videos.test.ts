import { beforeAll, describe, expect, test } from "vitest";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import { heldBack } from "../../../test/support/held-back.ts";
import {
  bytesAnswer,
  formOf,
  redirectTo,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import type { SeenRequest } from "../../../test/support/scripted-upstream.ts";
import { sampleMp3, sampleMp4, samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  reference,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "../media/world.fixture.ts";

/** Large enough not to pass in one piece. */
const video = sampleMp4({ width: 1280, height: 720, frameBytes: 20_000 });
let png: Buffer;
beforeAll(async () => {
  png = await samplePng();
});

const start = () => startScriptedMediaUpstream("openai", { images: [], video, sound: sampleMp3() });
const contentRoute = "GET /videos/*/content";

describe("a video of an OpenAI upstream", () => {
  test("is created, watched, and stored as it comes", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const { task, progress, resumeIds } = world.task({
      ...{ upstream: upstreamAt(upstream.baseUrl), request: videoRequest },
      references: [reference(png)],
    });
    const outputs = await world.upstreams.generate(task);
    expect(outputs).toMatchObject([
      { mimeType: "video/mp4", width: 1280, height: 720, durationSeconds: 6 },
    ]);
    expect(await world.stored(outputs[0]?.blobKey ?? "")).toEqual(video);
    expect(resumeIds).toEqual(["video_up_1"]);
    expect(progress).toEqual([0, 33, 66]);
    expect(world.pauses).toEqual([1000, 1500, 2250]);
    expect(upstream.requests.map(({ path }) => path)).toEqual([
      "/v1/videos",
      ...Array(3).fill("/v1/videos/video_up_1"),
      "/v1/videos/video_up_1/content",
    ]);
    for (const { headers } of upstream.requests) {
      expect(headers.authorization).toBe(`Bearer ${upstreamKey}`);
    }
    const form = await formOf(upstream.requests[0] as SeenRequest);
    const { input_reference, ...fields } = Object.fromEntries(form);
    expect(fields).toEqual({
      ...{ model: "model-up", prompt: "waves", seconds: "6", size: "1280x720" },
    });
    expect(Buffer.from(await (input_reference as File).arrayBuffer())).toEqual(png);
  });

  test("is looked at less and less often, or as Retry-After asks", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.wording.runningLooks = 6;
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    await world.upstreams.generate(world.task(asked).task);
    expect(world.pauses).toEqual([1000, 1500, 2250, 3375, 5000, 5000, 5000]);
    world.pauses.length = 0;
    upstream.next("POST /videos", {
      kind: "custom",
      handle(_seen, response) {
        response.writeHead(200, { "content-type": "application/json", "retry-after": "9" });
        response.end(JSON.stringify({ id: "video_up_1", status: "queued" }));
      },
    });
    await world.upstreams.generate(world.task(asked).task);
    expect(world.pauses[0]).toBe(9000);
  });

  test("is picked up again by its id, and never created twice", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    // The first attempt loses the job while it watches.
    const controller = new AbortController();
    const first = world.task({
      ...asked,
      signal: controller.signal,
      progress: () => controller.abort(new Error("the lease is lost")),
    });
    await expect(world.upstreams.generate(first.task)).rejects.toThrow("the lease is lost");
    const [resumeId] = first.resumeIds;
    const second = world.task({ ...asked, resumeId });
    await expect(world.upstreams.generate(second.task)).resolves.toHaveLength(1);
    expect(upstream.seen("POST /videos")).toHaveLength(1);
    expect(second.resumeIds).toEqual([]);
  });

  test("is not watched where its id could not be kept", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const { task } = world.task({
      ...{ upstream: upstreamAt(upstream.baseUrl), request: videoRequest },
      saveResumeId: () => Promise.reject(new Error("another attempt has the job")),
    });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    expect(upstream.requests).toHaveLength(1);
  });

  test("fails where its task is lost, and stays unknown while looks fail", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = {
      ...{ upstream: upstreamAt(upstream.baseUrl), request: videoRequest },
      resumeId: "video_up_1",
    };
    const generate = () => world.upstreams.generate(world.task(asked).task);
    const route = "GET /videos/*";
    upstream.always(route, { kind: "status", status: 404 });
    await expect(generate()).rejects.toMatchObject({ fault: "failed" });
    for (const [status, looks] of [
      [500, 6],
      [429, 6],
      [401, 1],
    ] as const) {
      const before = upstream.requests.length;
      upstream.always(route, { kind: "status", status });
      await expect(generate()).rejects.toMatchObject({ fault: "unknown" });
      expect(upstream.requests.length - before).toBe(looks);
    }
    upstream.always(route, { kind: "garbage" });
    await expect(generate()).rejects.toMatchObject({ fault: "unknown" });
    upstream.always(route, undefined);
    upstream.next(route, { kind: "status", status: 503 }, { kind: "drop" }, { kind: "garbage" });
    await expect(generate()).resolves.toHaveLength(1);
    expect(upstream.seen("POST /videos")).toEqual([]);
  });

  test.each([
    ["moderation_blocked", "content_policy"],
    ["video_generation_failed", "failed"],
  ])("that fails upstream with %s is %s", async (code, fault) => {
    await using upstream = await start();
    await using world = await createWorld();
    const body = { id: "video_up_1", status: "failed", error: { code, message: "SECRET WORDS" } };
    upstream.always("GET /videos/*", { kind: "json", body });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: videoRequest });
    const work = world.upstreams.generate(task);
    await expect(work).rejects.toMatchObject({ fault });
    await expect(work).rejects.not.toThrow("SECRET WORDS");
    expect(world.logLines.join("")).not.toContain("SECRET WORDS");
  });

  test.each([
    [400, "failed", 1],
    [404, "not_taken", 1],
    [429, "not_taken", 1],
    [503, "not_taken", 1],
    [500, "broke_off", 1],
    [502, "unknown", 1],
  ])("whose creation answers %i is %s after %i requests", async (status, fault, requests) => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /videos", { kind: "status", status });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: videoRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault });
    expect(upstream.requests).toHaveLength(requests);
  });

  test("whose creation names no task fails, as do two references", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    const references = [reference(png), reference(png)];
    const two = world.upstreams.generate(world.task({ ...asked, references }).task);
    await expect(two).rejects.toMatchObject({ fault: "failed" });
    expect(upstream.requests).toEqual([]);
    for (const id of [undefined, "", 7, "x".repeat(301)]) {
      upstream.next("POST /videos", { kind: "json", body: { id, status: "queued" } });
      const work = world.upstreams.generate(world.task(asked).task);
      await expect(work).rejects.toMatchObject({ fault: "failed" });
    }
  });
});

describe("the download of a video", () => {
  test("begins again where it was cut, and stores the whole once", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.next(contentRoute, bytesAnswer(video, "video/mp4", { cutAfter: 300_000 }), {
      kind: "status",
      status: 502,
    });
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    const [output] = await world.upstreams.generate(world.task(asked).task);
    expect(await world.stored(output?.blobKey ?? "")).toEqual(video);
    expect(await world.storedKeys()).toEqual([output?.blobKey]);
    expect(upstream.seen(contentRoute)).toHaveLength(3);
  });

  test("that is cut every time is unknown, and leaves nothing", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always(contentRoute, bytesAnswer(video, "video/mp4", { cutAfter: 300_000 }));
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: videoRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    // For 30 s, with pauses that double up to five seconds.
    expect(upstream.seen(contentRoute)).toHaveLength(10);
    expect(await world.storedKeys()).toEqual([]);
  });

  test("that stops without an end is unknown", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always(contentRoute, bytesAnswer(video, "video/mp4", { hangAfter: 300_000 }));
    const slow = upstreamAt(upstream.baseUrl, "OPENAI", { idleTimeoutMs: 1_000n });
    const { task } = world.task({ upstream: slow, request: videoRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
  });

  test("of something that is no video fails, and leaves nothing", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    for (const bytes of [png, Buffer.from("{}"), video.subarray(0, -1), Buffer.alloc(0)]) {
      upstream.always(contentRoute, bytesAnswer(bytes, "video/mp4"));
      const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
      const work = world.upstreams.generate(world.task(asked).task);
      await expect(work).rejects.toMatchObject({ fault: "failed" });
    }
    expect(await world.storedKeys()).toEqual([]);
  });

  test("of more than is allowed fails before it comes", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always(contentRoute, {
      kind: "custom",
      handle(_seen, response) {
        response.writeHead(200, { "content-length": 2 ** 31 });
        response.write("first");
      },
    });
    const { task } = world.task({ upstream: upstreamAt(upstream.baseUrl), request: videoRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
  });

  test("follows redirects: with the key within the origin, without it elsewhere", async () => {
    await using upstream = await start();
    await using elsewhere = await start();
    await using world = await createWorld();
    upstream.next(contentRoute, redirectTo("/v1/made/video_1"), redirectTo("/v1/made/video_1"));
    upstream.next("GET /made/*", bytesAnswer(video, "video/mp4"));
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    await expect(world.upstreams.generate(world.task(asked).task)).resolves.toHaveLength(1);
    expect(upstream.seen("GET /made/*")[0]?.headers.authorization).toBe(`Bearer ${upstreamKey}`);

    upstream.next("GET /made/*", redirectTo(`${elsewhere.baseUrl}/made/video_2`));
    elsewhere.next("GET /made/*", bytesAnswer(video, "video/mp4"));
    await expect(world.upstreams.generate(world.task(asked).task)).resolves.toHaveLength(1);
    expect(elsewhere.requests[0]?.headers).not.toHaveProperty("authorization");
  });

  test("goes round in no circles, and to no address that is not public", async () => {
    await using upstream = await start();
    await using elsewhere = await start();
    const fetcher = createGuardedFetcher({ allowPrivate: false });
    await using world = await createWorld({ fetcher });
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    for (const location of ["content", `${elsewhere.baseUrl}/made/video_2`]) {
      upstream.always(contentRoute, redirectTo(location));
      const work = world.upstreams.generate(world.task(asked).task);
      await expect(work).rejects.toMatchObject({ fault: "failed" });
    }
    expect(elsewhere.requests).toEqual([]);
  });

  test("ends at once with the signal, and leaves nothing", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always(contentRoute, bytesAnswer(video, "video/mp4", { hangAfter: 300_000 }));
    const controller = new AbortController();
    const { task } = world.task({
      ...{ upstream: upstreamAt(upstream.baseUrl), request: videoRequest },
      signal: controller.signal,
    });
    const work = world.upstreams.generate(task);
    const seen = await upstream.request(5);
    const reason = new Error("handed back");
    controller.abort(reason);
    await expect(work).rejects.toBe(reason);
    await seen.over;
    expect(seen.aborted).toBe(true);
    expect(await world.storedKeys()).toEqual([]);
  });

  test("is held back by a slow store: no video lies in memory", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const large = sampleMp4({ width: 1280, height: 720, frameBytes: 400_000 });
    const late = heldBack(large);
    upstream.always(contentRoute, late.answer);
    const asked = { upstream: upstreamAt(upstream.baseUrl), request: videoRequest };
    const { store } = world.task(asked).task;
    const slow = world.task({ ...asked, store: late.begunLate(store) });
    const [output] = await world.upstreams.generate(slow.task);
    expect(output?.sizeBytes).toBe(large.length);
    expect(await late.sentBytes).toBeLessThan(large.length / 2);
  });

  test("whose store fails is unknown, and its connection is closed", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always(contentRoute, bytesAnswer(video, "video/mp4", { hangAfter: 300_000 }));
    // The upstream's own time-outs must not close it before the download does.
    const times = { timeoutMs: 60_000n, idleTimeoutMs: 60_000n };
    const { task } = world.task({
      ...{ upstream: upstreamAt(upstream.baseUrl, "OPENAI", times), request: videoRequest },
      store: () => Promise.reject(new Error("the disk is full")),
    });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    const seen = upstream.seen(contentRoute)[0] as SeenRequest;
    await seen.over;
    expect(seen.aborted).toBe(true);
  });
});
