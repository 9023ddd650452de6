import { create } from "@bufbuild/protobuf";
import { beforeAll, describe, expect, test } from "vitest";
import { createGuardedFetcher } from "#kit/outside/index.ts";
import {
  ReferenceTransport,
  UpstreamSchema,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { reply } from "../../../test/support/upstreams/double.ts";
import {
  type ReplicateDouble,
  type ReplicatePlan,
  replicateAnswers,
  replicateErrors,
  startReplicate,
} from "../../../test/support/upstreams/replicate.ts";
import { modelCall, replicateCalls } from "../by-template/calls.fixture.ts";
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

const start = () => startReplicate({ key: upstreamKey });
const at = ({ baseUrl }: ReplicateDouble) => upstreamAt(baseUrl, "REPLICATE");
const inlineAt = (replicate: ReplicateDouble) =>
  create(UpstreamSchema, { ...at(replicate), references: ReferenceTransport.INLINE });
const imageAt = (replicate: ReplicateDouble, more: Partial<GenerationTask> = {}) => ({
  ...{ upstream: at(replicate), request: imageRequest, call: replicateCalls.image },
  ...more,
});
const videoAt = (replicate: ReplicateDouble, more: Partial<GenerationTask> = {}) => ({
  ...{ upstream: at(replicate), request: { ...videoRequest, mode: "i2v" as const } },
  ...{ call: replicateCalls.video, references: [reference(png), reference(png)] },
  ...more,
});

describe("a prediction at Replicate", () => {
  test("makes images, as the model's call says", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const request = { ...imageRequest, count: 2, aspectRatio: "3:2" };
    const { task, resumeIds, progress, sendings } = world.task(imageAt(replicate, { request }));
    const outputs = await world.upstreams.generate(task);
    expect(outputs).toMatchObject([{ mimeType: "image/png" }, { mimeType: "image/png" }]);
    expect(await world.stored(outputs[1]?.blobKey ?? "")).toEqual(replicate.outputs.images[0]);
    const [made] = replicate.predictions;
    expect(made).toMatchObject({ model: "black-forest-labs/flux-schnell", cancelAfter: "30m" });
    expect(made?.input).toEqual({
      ...{ prompt: "a red boat", num_outputs: 2, seed: seedOf("job_1"), aspect_ratio: "3:2" },
    });
    expect(resumeIds).toEqual([made?.id]);
    expect(sendings).toEqual([1]);
    expect(replicate.seen("submit")[0]?.path).toBe(
      "/v1/models/black-forest-labs/flux-schnell/predictions",
    );
    expect(progress).toEqual([0]);
    for (const { headers } of replicate.requests) {
      expect(headers.authorization).toBe(`Bearer ${upstreamKey}`);
    }
    expect(replicate.files.requests).toHaveLength(2);
    for (const { headers } of replicate.files.requests) {
      expect(headers.authorization).toBeUndefined();
    }
  });

  test("makes a video of references, which are uploaded; its log tells how far it is", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const logs = ["Using seed: 7", "a\n 42%|████", " 42%|████\ncaption: 99% sure", "100%|████"];
    replicate.plan({ logs, processing: 4 });
    const { task, progress } = world.task(videoAt(replicate));
    const outputs = await world.upstreams.generate(task);
    expect(outputs).toMatchObject([{ mimeType: "video/mp4", durationSeconds: 6 }]);
    expect(progress).toEqual([42, 42, 99]);
    const [made] = replicate.predictions;
    expect(made?.input).toMatchObject({ prompt: "waves", duration: 6 });
    expect(made?.references.map(({ at }) => at)).toEqual(["image", "last_frame_image"]);
    for (const { bytes } of made?.references ?? []) expect(Buffer.from(bytes)).toEqual(png);
    expect(replicate.seen("upload")).toHaveLength(2);
  });

  test("is given small references as data URIs where the catalog says so", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const upstream = inlineAt(replicate);
    await world.upstreams.generate(world.task(videoAt(replicate, { upstream })).task);
    expect(replicate.predictions[0]?.input.image).toMatch(/^data:image\/png;base64,/);
    expect(replicate.seen("upload")).toHaveLength(0);
    const large = reference(Buffer.concat([png, Buffer.alloc(300_000)]));
    const asked = { upstream, references: [large] };
    await world.upstreams.generate(world.task(videoAt(replicate, asked)).task);
    expect(replicate.seen("upload")).toHaveLength(1);
  });

  test("makes music", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const asked = { upstream: at(replicate), request: musicRequest, call: replicateCalls.music };
    const outputs = await world.upstreams.generate(world.task(asked).task);
    expect(outputs).toMatchObject([{ mimeType: "audio/mpeg" }]);
    expect(replicate.predictions[0]?.input).toEqual({ prompt: "Tides. slow", lyrics: "la la" });
  });

  test("of a version is asked for by that", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const version = `someone/painter:${"ab".repeat(32)}`;
    const call = modelCall(version, { prompt: "${prompt}" }, "output");
    replicate.plan({ output: ([url]) => url });
    await world.upstreams.generate(world.task(imageAt(replicate, { call })).task);
    expect(replicate.seen("submit")[0]?.path).toBe("/v1/predictions");
    expect(replicate.predictions[0]).toMatchObject({ model: "someone/painter", version });
  });

  test("is created once, and its answer is lost for good", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    for (const mishap of [{ kind: "lost" } as const, replicateAnswers.down, reply(502, {})]) {
      replicate.next("submit", mishap);
      const { task, resumeIds } = world.task(imageAt(replicate));
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
      expect(resumeIds).toEqual([]);
    }
    expect(replicate.seen("submit")).toHaveLength(3);
  });

  test("is picked up again by its id, and never created twice", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const dead = new AbortController();
    const first = world.task(imageAt(replicate, { signal: dead.signal }));
    first.task.saveResumeId = async (id) => {
      first.resumeIds.push(id);
      dead.abort(new Error("the worker died"));
    };
    await expect(world.upstreams.generate(first.task)).rejects.toThrow("the worker died");
    const second = world.task(imageAt(replicate, { resumeId: first.resumeIds[0] }));
    await expect(world.upstreams.generate(second.task)).resolves.toHaveLength(1);
    expect(replicate.seen("submit")).toHaveLength(1);
    expect(second.sendings).toEqual([]);
  });

  test.each<[string, Partial<ReplicatePlan>]>([
    ["content_policy", { end: "failed", error: replicateErrors.refused }],
    ["content_policy", { end: "failed", error: "NSFW content detected. Try running it again" }],
    ["failed", { end: "failed" }],
    ["failed", { end: "canceled" }],
    ["failed", { end: "aborted" }],
    ["failed", { output: () => null }],
    ["failed", { output: () => ({ other: 1 }) }],
  ])("ends as its state says: %s, %o", async (fault, plan) => {
    await using replicate = await start();
    await using world = await createWorld();
    replicate.plan(plan);
    const { task } = world.task(imageAt(replicate));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault });
    expect(world.logLines.join("")).not.toMatch(/a red boat|flagged|CUDA/);
  });

  test("whose outputs were removed has failed", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const made = world.task(imageAt(replicate));
    await world.upstreams.generate(made.task);
    const [resumeId = ""] = made.resumeIds;
    replicate.removeData(resumeId);
    const { task } = world.task(imageAt(replicate, { resumeId }));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
  });

  test.each([
    ["account_empty", replicateAnswers.insufficientCredit],
    ["too_many_requests", replicateAnswers.throttled],
  ])("that is turned away waits: %s", async (refusal, mishap) => {
    await using replicate = await start();
    await using world = await createWorld();
    replicate.next("submit", mishap);
    const { task } = world.task(imageAt(replicate));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({
      ...{ fault: "not_taken", refusal, isCertain: true },
    });
    expect(replicate.predictions).toHaveLength(0);
    const isDenied = world.logLines.some((line) => line.includes("denies what is configured"));
    expect(isDenied).toBe(refusal === "account_empty");
  });

  test("that is invalid has failed", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    replicate.next("submit", replicateAnswers.invalidInput);
    const { task } = world.task(imageAt(replicate));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
  });

  test("waits where its references cannot be uploaded, and has begun nothing", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    replicate.always("upload", replicateAnswers.down);
    const { task, sendings } = world.task(videoAt(replicate));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({
      ...{ fault: "not_taken", isCertain: true },
    });
    expect(sendings).toEqual([]);
    expect(replicate.seen("submit")).toHaveLength(0);
  });

  test("of no usable id has failed, and nothing is asked about it", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    for (const id of ["..", "a/b", "", 7, "x".repeat(400)]) {
      replicate.next("submit", reply(200, { id, status: "IN_QUEUE" }));
      const { task, resumeIds } = world.task(imageAt(replicate));
      await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
      expect(resumeIds).toEqual([]);
    }
    expect(replicate.requests).toHaveLength(5);
  });

  test("survives looks that fail", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    replicate.next("get", { kind: "drop" }, replicateAnswers.down, replicateAnswers.throttled);
    const { task } = world.task(imageAt(replicate));
    await expect(world.upstreams.generate(task)).resolves.toHaveLength(1);
    const lost = world.task(imageAt(replicate, { resumeId: "gone" }));
    await expect(world.upstreams.generate(lost.task)).rejects.toMatchObject({ fault: "failed" });
  });
});

describe("what Replicate has made", () => {
  test("is fetched again where it breaks off, and redirected without the key", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    const { files } = replicate;
    const url = files.add({ bytes: png, type: "image/png" });
    files.next("file", { kind: "file", cutAfter: 40 }, reply(302, {}, { location: url }));
    const outputs = await world.upstreams.generate(world.task(imageAt(replicate)).task);
    expect(await world.stored(outputs[0]?.blobKey ?? "")).toEqual(png);
    for (const { headers } of files.requests) expect(headers.authorization).toBeUndefined();
  });

  test("is known by its bytes", async () => {
    await using replicate = await start();
    await using world = await createWorld();
    replicate.plan({ makes: "sound" }, { makes: "image" });
    await expect(
      world.upstreams.generate(world.task(imageAt(replicate)).task),
    ).rejects.toMatchObject({ fault: "failed" });
    await expect(
      world.upstreams.generate(world.task(videoAt(replicate)).task),
    ).rejects.toMatchObject({ fault: "failed" });
    expect(await world.storedKeys()).toEqual([]);
  });

  test("is fetched from public addresses only", async () => {
    await using replicate = await start();
    await using world = await createWorld({
      fetcher: createGuardedFetcher({ allowPrivate: false }),
    });
    await expect(
      world.upstreams.generate(world.task(imageAt(replicate)).task),
    ).rejects.toMatchObject({ fault: "failed" });
    expect(replicate.files.requests).toHaveLength(0);
  });
});

test.each([
  ["before it starts", 0, "obeyed", true],
  ["while it runs", 1, "obeyed", true],
  ["that does not hear", 1, "ignored", false],
] as const)("a prediction %s is cancelled", async (_, steps, cancel, isTaken) => {
  await using replicate = await start();
  await using world = await createWorld();
  replicate.plan({ pace: "advance", cancel });
  const dead = new AbortController();
  const { task, resumeIds } = world.task(imageAt(replicate, { signal: dead.signal }));
  const work = world.upstreams.generate(task);
  await replicate.request("get", 1);
  for (let step = 0; step < steps; step++) replicate.advance();
  dead.abort(new Error("cancelled"));
  await expect(work).rejects.toThrow("cancelled");
  const cancelTask = {
    ...{ jobId: "job_1", kind: "image" as const, upstreamModel: "", upstream: at(replicate) },
    ...{ resumeId: resumeIds[0] ?? "", signal: AbortSignal.timeout(10_000) },
  } as const;
  expect(await world.upstreams.cancel(cancelTask)).toBe(isTaken);
  expect(await world.upstreams.cancel({ ...cancelTask, resumeId: "gone" })).toBe(false);
});
