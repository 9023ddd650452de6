import { create } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import {
  ReferenceTransport,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { reply } from "../../../test/support/upstreams/double.ts";
import {
  type FalDouble,
  falAnswers,
  falFailures,
  startFal,
} from "../../../test/support/upstreams/fal.ts";
import { falCalls, modelCall } from "../by-template/calls.fixture.ts";
import { seedOf } from "../by-template/values.ts";
import type { GenerationTask } from "../media/port.ts";
import { samplePng } from "../media/samples.fixture.ts";
import {
  createWorld,
  imageRequest,
  musicRequest,
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
const inlineAt = (fal: FalDouble) =>
  create(UpstreamSchema, { ...at(fal), references: ReferenceTransport.INLINE });
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

describe("a request in fal's queue", () => {
  test("makes images, as the model's call says", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const request = { ...imageRequest, count: 2, width: 64, height: 48 };
    const { task, resumeIds, progress, sendings } = world.task(imageAt(fal, { request }));
    const outputs = await world.upstreams.generate(task);
    expect(outputs).toMatchObject([
      { mimeType: "image/png", width: 64, height: 48 },
      { mimeType: "image/png", width: 64, height: 48 },
    ]);
    expect(await world.stored(outputs[1]?.blobKey ?? "")).toEqual(fal.outputs.images[0]);
    const [made] = fal.generations;
    expect(made?.model).toBe("fal-ai/flux/dev");
    expect(made?.input).toEqual({
      ...{ prompt: "a red boat", num_images: 2, seed: seedOf("job_1") },
      image_size: { width: 64, height: 48 },
    });
    expect(resumeIds).toEqual([`fal-ai/flux/requests/${made?.id}`]);
    expect(sendings).toEqual([1]);
    // A place in the queue is no progress.
    expect(progress).toEqual([]);
    const [submitted] = fal.seen("submit");
    expect(submitted?.headers).toMatchObject({
      ...{ "x-fal-no-retry": "1", "x-fal-request-timeout": "1800" },
    });
    for (const { headers } of fal.requests) {
      expect(headers.authorization).toBe(`Key ${upstreamKey}`);
    }
    // The files are public: they need no key and get none.
    expect(fal.files.requests).toHaveLength(2);
    for (const { headers } of fal.files.requests) expect(headers.authorization).toBeUndefined();
  });

  test("makes a video of a first and a last frame, which are uploaded", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const outputs = await world.upstreams.generate(world.task(videoAt(fal)).task);
    expect(outputs).toMatchObject([{ mimeType: "video/mp4", durationSeconds: 6 }]);
    const [made] = fal.generations;
    expect(made?.input).toMatchObject({
      ...{ prompt: "waves", duration: "6", resolution: "720p", generate_audio: false },
      image_url: expect.stringContaining(fal.files.origin),
    });
    expect(made?.references.map(({ at }) => at)).toEqual(["image_url", "end_image_url"]);
    for (const { bytes } of made?.references ?? []) expect(Buffer.from(bytes)).toEqual(png);
    expect(fal.files.seen("put")).toHaveLength(2);
    for (const { headers } of fal.files.requests) expect(headers.authorization).toBeUndefined();
  });

  test("is given references as data URIs where the catalog says so", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const { task } = world.task(videoAt(fal, { upstream: inlineAt(fal) }));
    await world.upstreams.generate(task);
    const [made] = fal.generations;
    expect(made?.input.image_url).toMatch(/^data:image\/png;base64,/);
    expect(made?.references).toHaveLength(2);
    expect(fal.seen("initiate")).toHaveLength(0);
  });

  test("is not given more as data URIs than a request may hold", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const large = Buffer.concat([png, Buffer.alloc(5 * 1024 * 1024)]);
    const asked = { upstream: inlineAt(fal), references: [reference(large)] };
    await world.upstreams.generate(world.task(videoAt(fal, asked)).task);
    expect(fal.seen("initiate")).toHaveLength(1);
    expect(fal.generations[0]?.references[0]?.bytes.length).toBe(large.length);
  });

  test("makes music", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const asked = { upstream: at(fal), request: musicRequest, call: falCalls.music };
    const outputs = await world.upstreams.generate(world.task(asked).task);
    expect(outputs).toMatchObject([{ mimeType: "audio/mpeg" }]);
    expect(fal.generations[0]?.input).toEqual({
      ...{ prompt: "Tides. slow", lyrics: "la la", is_instrumental: false },
    });
  });

  test("of a namespace keeps it", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.usual.makes = "image";
    const call = modelCall("workflows/me/mine/below", { prompt: "${prompt}" }, "images[*].url");
    const { task, resumeIds } = world.task(imageAt(fal, { call }));
    await world.upstreams.generate(task);
    expect(resumeIds[0]).toMatch(/^workflows\/me\/mine\/requests\//);
  });

  test("is submitted once, and its answer is lost for good", async () => {
    await using fal = await start();
    await using world = await createWorld();
    for (const mishap of [{ kind: "lost" } as const, reply(500, {}), reply(502, {})]) {
      fal.next("submit", mishap);
      const { task, resumeIds, sendings } = world.task(imageAt(fal));
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
      expect(sendings).toEqual([1]);
      expect(resumeIds).toEqual([]);
    }
    expect(fal.seen("submit")).toHaveLength(3);
  });

  test("is picked up again by its id, and never submitted twice", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const dead = new AbortController();
    const first = world.task(imageAt(fal, { signal: dead.signal }));
    first.task.saveResumeId = async (id) => {
      first.resumeIds.push(id);
      dead.abort(new Error("the worker died"));
    };
    await expect(world.upstreams.generate(first.task)).rejects.toThrow("the worker died");
    const [resumeId] = first.resumeIds;
    const second = world.task(imageAt(fal, { resumeId }));
    await expect(world.upstreams.generate(second.task)).resolves.toHaveLength(1);
    expect(fal.seen("submit")).toHaveLength(1);
    expect(second.sendings).toEqual([]);
    expect(fal.paid()).toHaveLength(1);
  });

  test("that fails ends as its result says, and is not asked for again", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const failures = [
      ["content_policy", falFailures.refused],
      ["failed", falFailures.invalid],
      ["failed", falFailures.timedOut],
      ["failed", falFailures.neverStarted],
      ["failed", falFailures.runnerGone],
      ["failed", falFailures.runnerFailed],
      ["failed", falFailures.cancelled],
    ] as const;
    for (const [fault, failure] of failures) {
      fal.plan({ failure });
      const { task } = world.task(imageAt(fal));
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault });
    }
    expect(fal.seen("result")).toHaveLength(failures.length);
    expect(world.logLines.join("")).not.toContain("a red boat");
    expect(world.logLines.join("")).not.toContain("could not be processed");
  });

  test("is refused for content where its result marks all outputs so, and gives the others", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const two = { ...imageRequest, count: 2 };
    const made = async (marks: (boolean | null)[], images: number, request = two) => {
      const paths: string[] = [];
      fal.plan({
        output: () => ({
          images: Array.from({ length: images }, () => {
            paths.push(fal.files.add({ bytes: png, type: "image/png" }));
            return { url: paths.at(-1) ?? "" };
          }),
          has_nsfw_concepts: marks,
        }),
      });
      const before = fal.files.requests.length;
      await world.upstreams.generate(world.task(imageAt(fal, { request })).task);
      return fal.files.requests
        .slice(before)
        .map(({ path }) => paths.findIndex((url) => url.endsWith(path)));
    };
    const refused = { fault: "content_policy" };
    for (const [marks, images] of [
      [[true, true], 2],
      [[true, true], 0],
      // The answer does not show which of them it was.
      [[true, null], 2],
    ] as const) {
      await expect(made([...marks], images)).rejects.toMatchObject(refused);
    }
    await expect(made([false, true], 0)).rejects.toMatchObject({ fault: "failed" });
    expect(fal.files.requests).toHaveLength(0);
    expect(await made([false, true], 2)).toEqual([0]);
    expect(await made([true, false], 2)).toEqual([1]);
    // Refused ones are left out.
    expect(await made([true, false], 1)).toEqual([0]);
    // The mark belongs to another output than the requested one.
    expect(await made([false, true], 2, imageRequest)).toEqual([0]);
  });

  test("of a locked account was not taken, and the operator's log says why", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.lock();
    const { task } = world.task(imageAt(fal));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({
      ...{ fault: "not_taken", refusal: "account_empty", isCertain: true },
    });
    const line = world.logLines.find((text) => text.includes("denies what is configured"));
    expect(JSON.parse(line ?? "{}")).toMatchObject({ level: 50, status: 403 });
    expect(line).not.toContain("Exhausted");
    // A request that was taken before goes on.
    fal.lock(false);
    const dead = new AbortController();
    const first = world.task(imageAt(fal, { signal: dead.signal }));
    first.task.saveResumeId = async (id) => {
      first.resumeIds.push(id);
      dead.abort(new Error("the worker died"));
    };
    await expect(world.upstreams.generate(first.task)).rejects.toThrow();
    fal.lock();
    const [resumeId] = first.resumeIds;
    const again = world.task(imageAt(fal, { resumeId }));
    await expect(world.upstreams.generate(again.task)).resolves.toHaveLength(1);
  });

  test.each([
    ["too_many_requests", falAnswers.tooMany],
    ["unavailable", falAnswers.down],
  ])("that is turned away waits: %s", async (refusal, mishap) => {
    await using fal = await start();
    await using world = await createWorld();
    fal.next("submit", mishap);
    const { task } = world.task(imageAt(fal));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({
      ...{ fault: "not_taken", refusal, isCertain: true },
    });
    expect(fal.generations).toHaveLength(0);
  });

  test("waits where its references cannot be uploaded, and has begun nothing", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.always("initiate", falAnswers.down);
    const { task, sendings } = world.task(videoAt(fal));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({
      ...{ fault: "not_taken", isCertain: true },
    });
    expect(sendings).toEqual([]);
    fal.always("initiate", undefined);
    fal.files.always("put", reply(503, {}));
    await expect(world.upstreams.generate(world.task(videoAt(fal)).task)).rejects.toMatchObject({
      ...{ fault: "not_taken", isCertain: true },
    });
    expect(fal.seen("submit")).toHaveLength(0);
  });

  test("of no usable id has failed, and nothing is asked about it", async () => {
    await using fal = await start();
    await using world = await createWorld();
    for (const request_id of ["..", "a/b", "", 7, "x".repeat(400)]) {
      fal.next("submit", reply(200, { request_id, status: "IN_QUEUE" }));
      const { task, resumeIds } = world.task(imageAt(fal));
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
      expect(resumeIds).toEqual([]);
    }
    expect(fal.requests).toHaveLength(5);
  });

  test("survives looks that fail", async () => {
    await using fal = await start();
    await using world = await createWorld();
    fal.next("status", { kind: "drop" }, falAnswers.down, falAnswers.unauthenticated);
    const { task, resumeIds } = world.task(imageAt(fal));
    // A key that is being changed does not fail the job.
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    fal.next("result", { kind: "drop" }, falAnswers.down);
    const again = world.task(imageAt(fal, { resumeId: resumeIds[0] }));
    await expect(world.upstreams.generate(again.task)).resolves.toHaveLength(1);
    expect(fal.seen("submit")).toHaveLength(1);
  });

  test("that fal knows nothing of has failed", async () => {
    await using fal = await start();
    await using world = await createWorld();
    const { task } = world.task(imageAt(fal, { resumeId: "fal-ai/flux/requests/gone" }));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
  });
});

describe("a request that is wanted no more", () => {
  test.each([
    ["in the queue", 0, "obeyed", []],
    ["while it runs", 2, "obeyed", []],
    ["that the model does not hear", 2, "ignored", [1]],
  ] as const)("%s is cancelled", async (_, steps, cancel, paid) => {
    await using fal = await start();
    await using world = await createWorld();
    fal.plan({ pace: "advance", cancel });
    const dead = new AbortController();
    const { task, resumeIds } = world.task(imageAt(fal, { signal: dead.signal }));
    const work = world.upstreams.generate(task);
    await fal.request("status", 1);
    for (let step = 0; step < steps; step++) fal.advance();
    dead.abort(new Error("cancelled"));
    await expect(work).rejects.toThrow("cancelled");
    const cancelTask = {
      ...{ jobId: "job_1", kind: "image" as const, upstreamModel: "", upstream: at(fal) },
      ...{ resumeId: resumeIds[0] ?? "", signal: AbortSignal.timeout(10_000) },
    } as const;
    expect(await world.upstreams.cancel(cancelTask)).toBe(true);
    fal.finish();
    expect(await world.upstreams.cancel(cancelTask)).toBe(false);
    const unknown = { ...cancelTask, resumeId: "fal-ai/flux/requests/gone" };
    expect(await world.upstreams.cancel(unknown)).toBe(false);
    expect(fal.paid()).toHaveLength(paid.length);
    expect(fal.seen("cancel").map(({ method }) => method)).toEqual(["PUT", "PUT", "PUT"]);
  });
});
