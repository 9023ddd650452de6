import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { creditsOf, download, ended, sha256Of, startMediaWorld, submit } from "./media-world.ts";
import { ownWorldOnly } from "./world.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const day = 86_400_000;
const instant = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const accepted = { status: expect.stringMatching(/^(queued|running)$/), terminal: false };
const unfinished = {
  ...{ progress: expect.any(Number), createdAt: instant, completedAt: null, error: null },
};

/** Checks the times of an ended job, their order, and the ends of its storage. */
function expectTimes(job: Record<string, string>): void {
  const { createdAt = "", startedAt = "", completedAt = "", expiresAt = "" } = job;
  expect(createdAt <= startedAt && startedAt <= completedAt).toBe(true);
  expect(Date.parse(expiresAt)).toBe(Date.parse(completedAt) + 30 * day);
}

describe("a job from its submission to its file", () => {
  test("images, two of them", async () => {
    const caller = await world.caller({ credits: 10n });
    const body = { model: "small-image", prompt: "a red boat", n: 2, size: "96x64" };
    const answer = await caller.post("/images/generations", body);
    expect(answer.status).toBe(202);
    expect(answer.headers.get("x-request-id")).toMatch(/./);
    expect(answer.headers.get("idempotency-replayed")).toBeNull();
    const job = answer.json;
    const fixed = {
      id: expect.stringMatching(/^job_[a-z0-9]+$/),
      jobId: job.id,
      object: "image.job",
      model: "small-image",
      modelId: "small-image",
      modelName: "small-image",
      n: 2,
      size: "96x64",
      creditsReserved: 2,
      statusUrl: `${world.baseUrl}/images/generations/${job.id}`,
    };
    const startedAt = job.startedAt === null ? null : instant;
    expect(job).toEqual({ ...fixed, ...accepted, ...unfinished, startedAt, images: [] });
    const done = await ended(caller, job);
    expect(done).toEqual({
      ...fixed,
      ...{ status: "completed", terminal: true, progress: 100, creditsCharged: 2, error: null },
      ...{ createdAt: job.createdAt, startedAt: instant, completedAt: instant, expiresAt: instant },
      images: Array(2).fill({
        id: expect.stringMatching(/^file_/),
        url: expect.stringContaining(`${job.statusUrl}/files/file_`),
        mimeType: "image/png",
        sizeBytes: expect.any(Number),
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        width: 96,
        height: 64,
        expiresAt: done.expiresAt,
      }),
    });
    expectTimes(done);
    expect(new Set(done.images.map(({ id }: { id: string }) => id)).size).toBe(2);
    for (const { url, sizeBytes, sha256 } of done.images) {
      const { status, bytes } = await download(caller, url);
      expect([status, bytes.length, sha256Of(bytes)]).toEqual([200, sizeBytes, sha256]);
      expect(bytes.subarray(1, 4).toString()).toBe("PNG");
    }
    expect(await creditsOf(caller)).toEqual({
      ...{ available: 8, reserved: 0, spendable: 8, monthSpent: 2 },
    });
  });

  test("a video, rendered here", async () => {
    const caller = await world.caller({ credits: 200n });
    const asked = { seconds: 5, resolution: "480p", aspectRatio: "1:1" };
    const body = { model: "svcalt-video-1-4", prompt: "waves", ...asked };
    const { status, json: job } = await caller.post("/videos/generations", body);
    expect(status).toBe(202);
    const fixed = {
      ...{ id: job.id, jobId: job.id, object: "video.job", mode: "t2v", durationSeconds: 5 },
      ...{ model: body.model, modelId: body.model, modelName: "SVC Alt Video 1.4" },
      ...{ resolution: "480p", aspectRatio: "1:1", creditsReserved: 120 },
      statusUrl: `${world.baseUrl}/videos/generations/${job.id}`,
    };
    const startedAt = job.startedAt === null ? null : instant;
    expect(job).toEqual({ ...fixed, ...accepted, ...unfinished, startedAt, videos: [] });
    expect(await creditsOf(caller)).toMatchObject({ reserved: 120, spendable: 80 });
    const done = await ended(caller, job);
    expect(done).toEqual({
      ...fixed,
      ...{ status: "completed", terminal: true, progress: 100, creditsCharged: 120, error: null },
      ...{ createdAt: job.createdAt, startedAt: instant, completedAt: instant, expiresAt: instant },
      videos: [
        {
          id: expect.stringMatching(/^file_/),
          url: expect.stringContaining(`${job.statusUrl}/files/file_`),
          mimeType: "video/mp4",
          sizeBytes: expect.any(Number),
          sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
          ...{ width: 480, height: 480, durationSeconds: expect.closeTo(5, 1) },
          expiresAt: done.expiresAt,
        },
      ],
    });
    expectTimes(done);
    const { bytes } = await download(caller, done.videos[0].url);
    expect(bytes.subarray(4, 8).toString()).toBe("ftyp");
    expect(sha256Of(bytes)).toBe(done.videos[0].sha256);
    expect(await creditsOf(caller)).toMatchObject({ available: 80, reserved: 0, monthSpent: 120 });
  });

  test("music", async () => {
    const caller = await world.caller({ credits: 20n });
    const body = { model: "music-1", mode: "lyrics", title: "Tides", lyrics: "la la la" };
    const job = await submit(caller, "music", body);
    expect(job).toMatchObject({ object: "music.job", mode: "lyrics", clips: [], ...accepted });
    expect(job).toMatchObject({ creditsReserved: 20, modelName: "Music One" });
    const done = await ended(caller, job);
    expect(done).toMatchObject({ status: "completed", creditsCharged: 20, error: null });
    expect(done.clips).toEqual([
      {
        id: expect.stringMatching(/^file_/),
        url: expect.stringContaining(`${world.baseUrl}/music/generations/${job.id}/files/`),
        mimeType: "audio/mpeg",
        sizeBytes: expect.any(Number),
        sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
        durationSeconds: expect.any(Number),
        expiresAt: done.expiresAt,
      },
    ]);
    const { headers, bytes } = await download(caller, done.clips[0].url);
    expect(headers.get("content-type")).toBe("audio/mpeg");
    expect(sha256Of(bytes)).toBe(done.clips[0].sha256);
    expect(done.clips[0].durationSeconds).toBeGreaterThan(5);
    expect(await creditsOf(caller)).toMatchObject({ available: 0, spendable: 0, monthSpent: 20 });
  });

  test("a video of another service", async () => {
    const caller = await world.caller({ credits: 45n });
    const body = { modelId: "svc-video-1-5", prompt: "waves", durationSeconds: 6 };
    const done = await ended(caller, await submit(caller, "videos", body));
    expect(done).toMatchObject({ status: "completed", creditsCharged: 45, resolution: "480p" });
    expect(done.videos[0]).toMatchObject({ mimeType: "video/mp4", durationSeconds: 6 });
    const { bytes } = await download(caller, done.videos[0].url);
    expect(bytes.equals(Buffer.from(media.wording.outputs.video))).toBe(true);
  });
});

describe("a job that fails", () => {
  test.each([
    ["content_policy_violation", 400, "invalid_request_error", "content_policy_violation"],
    ["moderation_blocked", 403, "invalid_request_error", "content_policy_violation"],
    ["invalid_size", 400, "server_error", "generation_failed"],
  ])("upstream said %s, %d", async (code, status, type, publicCode) => {
    const caller = await world.caller({ credits: 5n });
    const message = "UPSTREAM-WORDS";
    media.next("POST /images/generations", { kind: "status", status, code, message });
    const body = { model: "scripted-image", prompt: "something", n: 3 };
    const done = await ended(caller, await submit(caller, "images", body));
    expect(done).toMatchObject({
      status: "failed",
      terminal: true,
      creditsReserved: 3,
      images: [],
    });
    expect(done.creditsCharged).toBe(0);
    expect(done.error).toEqual({
      message: expect.any(String),
      type,
      code: publicCode,
      param: null,
    });
    expect(JSON.stringify(done)).not.toContain(message);
    expectTimes(done);
    expect(await creditsOf(caller)).toEqual({
      ...{ available: 5, reserved: 0, spendable: 5, monthSpent: 0 },
    });
  });

  test("its picture is none", async () => {
    const caller = await world.caller({ credits: 5n });
    const data = [{ b64_json: Buffer.from("no picture").toString("base64") }];
    media.next("POST /images/generations", { kind: "json", body: { created: 1, data } });
    const job = await submit(caller, "images", { model: "scripted-image", prompt: "x" });
    const done = await ended(caller, job);
    expect(done).toMatchObject({ status: "failed", creditsCharged: 0, images: [] });
    expect(done.error).toMatchObject({ type: "server_error", code: "generation_failed" });
    expect(await creditsOf(caller)).toMatchObject({ spendable: 5, reserved: 0 });
  });
});

describe("whose a job is", () => {
  test("another kind's path, another key, another account, no account: the same 404", async () => {
    const caller = await world.caller({ credits: 5n });
    const sibling = await world.withKey(caller, {});
    const stranger = await world.caller();
    const job = await submit(caller, "images", { model: "small-image", prompt: "x" });
    const [file] = (await ended(caller, job)).images;
    const path = `/images/generations/${job.id}`;
    const never = await caller.get("/images/generations/job_000000000000000000000000");
    expect(refusalOf(never)).toBe("404 not_found_error job_not_found null");
    for (const [who, asked] of [
      [sibling, path],
      [stranger, path],
      [caller, `/videos/generations/${job.id}`],
      [caller, `/music/generations/${job.id}`],
      [caller, "/images/generations/nonsense"],
    ] as const) {
      const answer = await who.get(asked);
      expect([answer.status, answer.text]).toEqual([404, never.text]);
    }
    expect(refusalOf(await sibling.get(`/jobs/${job.id}/events`))).toBe(refusalOf(never));

    const noFile = await caller.get(`${path}/files/file_000000000000000000000000`);
    expect(refusalOf(noFile)).toBe("404 not_found_error file_not_found null");
    for (const [who, asked] of [
      [sibling, `${path}/files/${file.id}`],
      [stranger, `${path}/files/${file.id}`],
      [caller, `/videos/generations/${job.id}/files/${file.id}`],
      [caller, `/images/generations/job_000000000000000000000000/files/${file.id}`],
      [caller, `/files/${file.id}/content`],
    ] as const) {
      const answer = await who.get(asked);
      expect([answer.status, answer.text]).toEqual([404, noFile.text]);
    }
    const names = (headers: Headers) => [...headers.keys()].sort();
    const other = await sibling.get(`${path}/files/${file.id}`);
    expect(names(other.headers)).toEqual(names(noFile.headers));
  });
});

describe("a seed", () => {
  const body = { model: "small-image", prompt: "a red boat", n: 2 };

  test("makes the same again, and another one something else", async () => {
    const caller = await world.caller({ credits: 20n });
    const make = async (more: object) =>
      ended(caller, await submit(caller, "images", { ...body, ...more }));
    const [first, again, other, none, zero] = await Promise.all(
      [{ seed: 7 }, { seed: 7 }, { seed: 70 }, {}, { seed: 0 }].map(make),
    );
    const made = (job: typeof first) => job.images.map(({ sha256 }: { sha256: string }) => sha256);
    expect(first.seed).toBe(7);
    expect(made(again)).toEqual(made(first));
    expect(made(other)).not.toEqual(made(first));
    expect(none).not.toHaveProperty("seed");
    expect(zero.seed).toBe(0);
    expect(made(zero)).toEqual(made(none));
  });

  test("is refused, as a negative prompt is, by a model that does not know it", async () => {
    const caller = await world.caller({ credits: 20n });
    for (const [more, param] of [
      [{ model: "scripted-image", seed: 7 }, "seed"],
      [{ negativePrompt: "people" }, "negativePrompt"],
    ] as const) {
      const answer = await caller.post("/images/generations", { ...body, ...more });
      expect(refusalOf(answer)).toBe(`400 invalid_request_error unsupported_parameter ${param}`);
    }
    expect(await creditsOf(caller)).toMatchObject({ reserved: 0, monthSpent: 0 });
  });
});

test("metadata comes back with the job, wherever it is told", async () => {
  const caller = await world.caller({ credits: 5n });
  const metadata = { order: "7", "café.$": "é", empty: "" };
  const asked = { model: "scripted-image", prompt: "a boat", metadata };
  const job = await submit(caller, "images", asked);
  expect(job.metadata).toEqual(metadata);
  expect((await ended(caller, job)).metadata).toEqual(metadata);
  expect((await caller.get("/jobs")).json.data[0].metadata).toEqual(metadata);
  expect(media.seen("POST /images/generations").at(-1)?.body).not.toHaveProperty("metadata");
});
