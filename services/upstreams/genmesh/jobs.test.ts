import { beforeAll, describe, expect, test } from "vitest";
import {
  bytesAnswer,
  formOf,
  startScriptedMediaUpstream,
} from "../../../test/support/scripted-media-upstream.ts";
import type { SeenRequest } from "../../../test/support/scripted-upstream.ts";
import { sampleMp3, sampleMp4, samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
  reference,
  upstreamAt,
  upstreamKey,
  videoRequest,
} from "../media/world.fixture.ts";

const video = sampleMp4({ width: 1280, height: 720, frameBytes: 10_000 });
const sound = sampleMp3(4);
let images: Buffer[];
beforeAll(async () => {
  images = [await samplePng(64, 48), await samplePng(80, 40)];
});

const start = () => startScriptedMediaUpstream("genmesh", { images, video, sound });
const at = (baseUrl: string) => upstreamAt(baseUrl, "GENMESH");

describe("a job at another deployment", () => {
  test("makes images: submitted, watched, downloaded, each as the peer says", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const extras = { negativePrompt: "people", seed: 7 };
    const request = { ...imageRequest, count: 2, resolution: "2k", aspectRatio: "16:9", ...extras };
    const asked = {
      upstream: at(upstream.baseUrl),
      request,
      jobId: "job_7",
      idempotencyKey: "job_7",
    };
    const { task, progress, resumeIds } = world.task(asked);
    const outputs = await world.upstreams.generate(task);
    expect(outputs.map(({ width, height }) => [width, height])).toEqual([
      [64, 48],
      [80, 40],
    ]);
    expect(await world.stored(outputs[1]?.blobKey ?? "")).toEqual(images[1]);
    expect(resumeIds).toEqual(["job_up_1"]);
    expect(progress).toEqual([33, 66]);
    const [posted] = upstream.requests;
    expect(posted?.path).toBe("/v1/images/generations");
    expect(posted?.headers["idempotency-key"]).toBe("job_7");
    expect(posted?.body).toEqual({
      ...{ model: "model-up", prompt: "a red boat", n: 2, resolution: "2k", aspectRatio: "16:9" },
      ...extras,
    });
    for (const { headers } of upstream.requests) {
      expect(headers.authorization).toBe(`Bearer ${upstreamKey}`);
    }
  });

  test("makes a video", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const { task } = world.task({ upstream: at(upstream.baseUrl), request: videoRequest });
    const outputs = await world.upstreams.generate(task);
    expect(outputs).toMatchObject([
      { mimeType: "video/mp4", width: 1280, height: 720, durationSeconds: 6 },
    ]);
    expect(await world.stored(outputs[0]?.blobKey ?? "")).toEqual(video);
    expect(upstream.requests[0]?.path).toBe("/v1/videos/generations");
    expect(upstream.requests[0]?.body).toEqual({
      ...{
        model: "model-up",
        prompt: "waves",
        seconds: 6,
        resolution: "720p",
        aspectRatio: "16:9",
      },
    });
  });

  test("makes music", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const { task } = world.task({ upstream: at(upstream.baseUrl), request: musicRequest });
    const [output] = await world.upstreams.generate(task);
    expect(output).toMatchObject({ mimeType: "audio/mpeg", width: 0, height: 0 });
    expect(output?.durationSeconds).toBeCloseTo(4, 1);
    expect(await world.stored(output?.blobKey ?? "")).toEqual(sound);
    expect(upstream.requests[0]?.body).toEqual({
      ...{
        model: "model-up",
        mode: "lyrics",
        title: "Tides",
        description: "slow",
        lyrics: "la la",
      },
    });
  });

  test("is submitted again under the same key until it is accepted, and is one job there", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const route = "POST /videos/generations";
    upstream.next(
      route,
      { kind: "drop" },
      { kind: "status", status: 502, headers: { "retry-after": "3" } },
    );
    const asked = { upstream: at(upstream.baseUrl), request: videoRequest };
    const first = world.task(asked);
    await world.upstreams.generate(first.task);
    expect(world.pauses.slice(0, 2)).toEqual([500, 3000]);
    expect(first.sendings).toHaveLength(1);
    // An attempt without any knowledge of the first finds the same job.
    const second = world.task(asked);
    await world.upstreams.generate(second.task);
    expect(second.resumeIds).toEqual(first.resumeIds);
    const keys = upstream.seen(route).map(({ headers }) => headers["idempotency-key"]);
    expect(keys).toEqual(Array(4).fill("job_1"));
  });

  test("is cancelled there, and only its own end says so", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: at(upstream.baseUrl), request: musicRequest };
    const { task, resumeIds } = world.task(asked);
    await world.upstreams.generate(task);
    const route = "POST /music/generations/*/cancel";
    const cancel = () =>
      world.upstreams.cancel({
        ...{ jobId: "job_1", kind: "music", upstreamModel: "model-up", upstream: asked.upstream },
        ...{ resumeId: resumeIds[0] ?? "", signal: AbortSignal.timeout(10_000) },
      });
    upstream.next(route, { kind: "status", status: 409, code: "job_not_cancellable" });
    expect(await cancel()).toBe(false);
    // A lost answer is requested again.
    upstream.next(route, { kind: "drop" });
    expect(await cancel()).toBe(true);
    const [first] = upstream.seen(route);
    expect(first?.path).toBe(`/v1/music/generations/${resumeIds[0]}/cancel`);
    expect(first?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
    expect(upstream.seen(route)).toHaveLength(3);
  });

  test("is picked up again by its id without being submitted", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: at(upstream.baseUrl), request: videoRequest };
    const first = world.task({ ...asked, progress: () => controller.abort(new Error("gone")) });
    const controller = new AbortController();
    const work = world.upstreams.generate({ ...first.task, signal: controller.signal });
    await expect(work).rejects.toThrow("gone");
    const resumeId = first.resumeIds[0];
    const references = [reference(images[0] as Buffer)];
    const second = world.task({ ...asked, resumeId, references });
    await expect(world.upstreams.generate(second.task)).resolves.toHaveLength(1);
    expect(upstream.seen("POST /videos/generations")).toHaveLength(1);
    expect(upstream.seen("POST /files")).toEqual([]);
  });

  test("gets its references as files, which are deleted once the job has them", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const [png, other] = images as [Buffer, Buffer];
    const references = [reference(png), reference(other, "image/webp")];
    upstream.next("POST /files", { kind: "status", status: 500 });
    const asked = { upstream: at(upstream.baseUrl), request: videoRequest, references };
    await world.upstreams.generate(world.task(asked).task);
    const uploads = upstream.seen("POST /files");
    expect(uploads.map(({ headers }) => headers["idempotency-key"])).toEqual([
      "job_1-reference-1",
      "job_1-reference-1",
      "job_1-reference-2",
    ]);
    const file = (await formOf(uploads[2] as SeenRequest)).get("file") as File;
    expect([file.name, file.type]).toEqual(["reference-2.webp", "image/webp"]);
    expect(Buffer.from(await file.arrayBuffer())).toEqual(other);
    const [posted] = upstream.seen("POST /videos/generations");
    expect(posted?.body.referenceFileIds).toEqual(["file_up_0", "file_up_1"]);
    const order = upstream.requests.map(({ method, path }) => `${method} ${path}`);
    expect(order.slice(3, 6)).toEqual([
      "POST /v1/videos/generations",
      "DELETE /v1/files/file_up_0",
      "DELETE /v1/files/file_up_1",
    ]);
  });

  test("leaves no references behind where it is refused; keeps them where that is not known", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const references = [reference(images[0] as Buffer)];
    const asked = { upstream: at(upstream.baseUrl), request: videoRequest, references };
    for (const [status, fault, deleted] of [
      [500, "unknown", 0],
      [400, "failed", 1],
    ] as const) {
      upstream.always("POST /videos/generations", { kind: "status", status });
      const work = world.upstreams.generate(world.task(asked).task);
      await expect(work).rejects.toMatchObject({ fault });
      expect(upstream.seen("DELETE /files/*")).toHaveLength(deleted);
    }
    // A file that cannot be deleted does no harm.
    upstream.always("POST /videos/generations", undefined);
    upstream.always("DELETE /files/*", { kind: "status", status: 500 });
    await expect(world.upstreams.generate(world.task(asked).task)).resolves.toHaveLength(1);
    expect(world.logLines.join("")).toContain("stays at the media upstream");
  });

  test.each([
    [402, "insufficient_credits", "not_taken"],
    [403, "permission_denied", "not_taken"],
    [422, "idempotency_key_reused", "failed"],
    [400, "content_policy_violation", "content_policy"],
    [429, "rate_limit_exceeded", "not_taken"],
    [503, "service_unavailable", "not_taken"],
    [500, "internal_error", "unknown"],
    [504, "upstream_timeout", "unknown"],
  ])("that is answered with %i %s is %s", async (status, code, fault) => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /images/generations", { kind: "status", status, code });
    const { task } = world.task({ upstream: at(upstream.baseUrl), request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault });
    expect(upstream.requests).toHaveLength(fault === "unknown" ? 3 : 1);
  });

  test("is perhaps written down there where it answers 503, and not where it answers 429", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    for (const [status, isCertain] of [
      [503, false],
      [429, true],
    ] as const) {
      upstream.next("POST /images/generations", { kind: "status", status });
      const { task } = world.task({ upstream: at(upstream.baseUrl), request: imageRequest });
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ isCertain });
    }
  });

  test.each(["drop", "hang", 502] as const)(
    "that loses the answer to an upload (%s) has not begun the job",
    async (how) => {
      await using upstream = await start();
      await using world = await createWorld();
      const behaviour =
        how === 502 ? ({ kind: "status", status: how } as const) : ({ kind: how } as const);
      upstream.always("POST /files", behaviour);
      const references = [reference(images[0] as Buffer)];
      const slow = upstreamAt(upstream.baseUrl, "GENMESH", { timeoutMs: 1_500n });
      const { task, sendings } = world.task({ upstream: slow, request: videoRequest, references });
      const work = world.upstreams.generate(task);
      await expect(work).rejects.toMatchObject({ fault: "not_taken", isCertain: true });
      expect(upstream.seen("POST /files")).toHaveLength(3);
      expect(sendings).toEqual([]);
    },
  );

  test.each([429, 503])("that has no room for references (%i) is offered later", async (status) => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.always("POST /files", { kind: "status", status, headers: { "retry-after": "9" } });
    const references = [reference(images[0] as Buffer)];
    const asked = { upstream: at(upstream.baseUrl), request: videoRequest, references };
    const { task, sendings } = world.task(asked);
    const work = world.upstreams.generate(task);
    await expect(work).rejects.toMatchObject({ fault: "not_taken", retryAfterMs: 9_000 });
    expect(upstream.requests).toHaveLength(1);
    expect(sendings).toEqual([]);
  });

  test.each([
    ["content_policy_violation", "content_policy"],
    ["generation_failed", "failed"],
    ["upstream_timeout", "failed"],
    ["job_expired", "failed"],
    ["service_unavailable", "unavailable"],
  ])("that failed there with %s is %s", async (code, fault) => {
    await using upstream = await start();
    await using world = await createWorld();
    const body = { id: "job_up_1", status: "failed", terminal: true, error: { code } };
    upstream.always("GET /images/generations/*", { kind: "json", body });
    const { task } = world.task({ upstream: at(upstream.baseUrl), request: imageRequest });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault });
  });

  test("that is lost there has failed; that shows no outputs likewise, and fewer are given", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const asked = { upstream: at(upstream.baseUrl), request: { ...imageRequest, count: 3 } };
    const lost = world.upstreams.generate(world.task({ ...asked, resumeId: "job_up_9" }).task);
    await expect(lost).rejects.toMatchObject({ fault: "failed" });
    const shows = (images: object[]) => {
      const body = { id: "job_up_1", status: "completed", terminal: true, images };
      upstream.always("GET /images/generations/*", { kind: "json", body });
    };
    shows([]);
    const none = world.upstreams.generate(world.task(asked).task);
    await expect(none).rejects.toMatchObject({ fault: "failed" });
    expect(await world.storedKeys()).toEqual([]);
    // Its own upstream refused two of them.
    const url = `${upstream.baseUrl}/images/generations/job_up_1/files/file_up_1`;
    shows([{ id: "file_up_1", url }]);
    const few = await world.upstreams.generate(world.task(asked).task);
    expect(few).toMatchObject([{ width: 80, height: 40 }]);
  });
});

describe("the files of another deployment", () => {
  const route = "GET /videos/generations/*/files/*";

  test("are fetched again where they are cut or are not what their digest says", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const other = sampleMp4({ width: 1280, height: 720, frameBytes: 9_000 });
    upstream.next(
      route,
      bytesAnswer(video, "video/mp4", { cutAfter: 100_000 }),
      bytesAnswer(other, "video/mp4"),
    );
    const asked = { upstream: at(upstream.baseUrl), request: videoRequest };
    const [output] = await world.upstreams.generate(world.task(asked).task);
    expect(await world.storedKeys()).toEqual([output?.blobKey]);
    expect(await world.stored(output?.blobKey ?? "")).toEqual(video);
    upstream.always(route, bytesAnswer(other, "video/mp4"));
    const work = world.upstreams.generate(world.task(asked).task);
    await expect(work).rejects.toMatchObject({ fault: "unknown" });
    expect(await world.storedKeys()).toHaveLength(1);
  });

  test("that are no media fail the job, and leave nothing", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    const junk = Buffer.from("neither picture nor sound nor film");
    upstream.wording.outputs = { images: [junk], video: junk, sound: junk };
    for (const request of [imageRequest, videoRequest, musicRequest]) {
      const { task } = world.task({
        upstream: at(upstream.baseUrl),
        request,
        idempotencyKey: request.kind,
      });
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    }
    expect(await world.storedKeys()).toEqual([]);
  });

  test("are fetched where we reach the peer, though it calls itself something else", async () => {
    await using upstream = await start();
    await using world = await createWorld();
    upstream.wording.publicBase = "https://media.example.com/v1";
    const { task } = world.task({ upstream: at(upstream.baseUrl), request: videoRequest });
    await expect(world.upstreams.generate(task)).resolves.toHaveLength(1);
    expect(upstream.seen(route)[0]?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
  });

  test("that lie elsewhere are fetched without our key", async () => {
    await using upstream = await start();
    await using elsewhere = await start();
    await using world = await createWorld();
    elsewhere.always("GET /made/*", bytesAnswer(video, "video/mp4"));
    const url = `${elsewhere.baseUrl}/made/video_1`;
    const body = { id: "job_up_1", status: "completed", videos: [{ id: "file_1", url }] };
    upstream.always("GET /videos/generations/*", { kind: "json", body });
    const { task } = world.task({ upstream: at(upstream.baseUrl), request: videoRequest });
    await expect(world.upstreams.generate(task)).resolves.toHaveLength(1);
    expect(elsewhere.requests[0]?.headers).not.toHaveProperty("authorization");
    expect(elsewhere.requests[0]?.headers).not.toHaveProperty("idempotency-key");
  });
});
