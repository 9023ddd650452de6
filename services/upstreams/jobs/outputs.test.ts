import { describe, expect, test } from "vitest";
import {
  type Answer,
  type Double,
  reply,
  replyText,
} from "../../../test/support/upstreams/double.ts";
import { sampleMp3 } from "../media/samples.fixture.ts";
import { createWorld, imageRequest, musicRequest, upstreamKey } from "../media/world.fixture.ts";
import { done, png, type Route, startDeclared, state, taskAt, usual } from "./double.fixture.ts";

describe("the output", () => {
  test("that is missing where the declaration says so was refused", async () => {
    await using double = await startDeclared([state("done")]);
    await using world = await createWorld();
    const declared = { ...usual, answers: { refused: { "video.url": [null] } } };
    await expect(
      world.upstreams.generate(world.task(taskAt(double, declared)).task),
    ).rejects.toMatchObject({ fault: "content_policy" });
  });

  test("is asked for at the place that the last look names", async () => {
    await using double = await startDeclared([state("done", { file_id: 12 })]);
    await using world = await createWorld();
    double.server.next("result", done(double.files));
    const declared = {
      ...usual,
      poll: { ...usual.poll, take: { file: "file_id" } },
      result: { get: "/files/${file}?of=${id}" },
    };
    await world.upstreams.generate(world.task(taskAt(double, declared)).task);
    expect(double.server.seen("result")[0]).toMatchObject({ path: "/v1/files/12" });
  });

  test("that the upstream does not give now stays to be asked for", async () => {
    await using double = await startDeclared([state("done", { file_id: 12 })]);
    await using world = await createWorld();
    double.server.next("result", reply(200, { code: 7, error: { code: "BusyNow" } }) as never);
    const declared = {
      ...usual,
      poll: { ...usual.poll, take: { file: "file_id" } },
      result: { get: "/files/${file}" },
    };
    const { task } = world.task(taskAt(double, declared));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
  });

  test("whose link has ended is named anew by another look", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    const gone = `${double.files.origin}/files/gone.mp4`;
    double.server.next("look", state("done", { video: { url: gone } }), done(double.files));
    const resumeId = JSON.stringify({ model: "film-2", id: "t1" });
    const { task } = world.task(taskAt(double, usual, { resumeId }));
    await expect(world.upstreams.generate(task)).resolves.toHaveLength(1);
    expect(double.server.seen("look")).toHaveLength(2);
  });

  test("at the upstream's origin gets the key where the declaration says so", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    const url = `${double.server.origin}/own/film.mp4`;
    double.server.always("look", state("done", { video: { url } }));
    await world.upstreams.generate(world.task(taskAt(double)).task);
    const keyed = { ...usual, auth: { header: "X-Key" }, download: "key" };
    await world.upstreams.generate(world.task(taskAt(double, keyed)).task);
    const [plain, own] = double.server.seen("own");
    expect([plain?.headers["x-key"], plain?.headers.authorization]).toEqual([undefined, undefined]);
    expect(own?.headers["x-key"]).toBe(upstreamKey);
  });

  test("that is the answer itself is stored", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    const bytes = Buffer.from(await sampleMp3());
    double.server.always("create", {
      kind: "custom",
      handle: (_, response) => void response.end(bytes),
    });
    const declared = { create: { post: "/videos", gives: "file" } };
    const { task, resumeIds } = world.task(taskAt(double, declared, { request: musicRequest }));
    const [output] = await world.upstreams.generate(task);
    expect(await world.stored(output?.blobKey ?? "")).toEqual(bytes);
    expect(resumeIds).toEqual([]);
  });

  test("that is in the answer to the first request needs no look", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    const url = double.files.add({ bytes: png, type: "image/png" });
    double.server.next("create", reply(200, { video: { url } }));
    const declared = { create: { post: "/videos" } };
    const { task } = world.task(taskAt(double, declared, { request: imageRequest }));
    await expect(world.upstreams.generate(task)).resolves.toHaveLength(1);
  });
});

describe("a cancel", () => {
  const cancel = (more: object = {}) => ({
    ...usual,
    cancel: { delete: "/tasks/${id}", when: ["queued"], ...more },
  });
  const asked = (double: { server: Double<Route> }, declared: object) => {
    const { upstream } = taskAt(double, declared);
    return {
      ...{ jobId: "job_1", kind: "video" as const, upstreamModel: "", upstream },
      ...{ resumeId: '{"model":"film-2","id":"t1"}', signal: AbortSignal.timeout(10_000) },
    };
  };
  test.each<[string, Answer, Answer | undefined, object, boolean, number]>([
    ["a task that waits", state("queued"), undefined, {}, true, 1],
    ["a task that runs", state("working"), undefined, {}, false, 0],
    ["a task that is done", state("done"), undefined, {}, false, 0],
    ["an unknown task", replyText(404), undefined, {}, false, 0],
    [
      "a success that says otherwise",
      state("queued"),
      reply(200, { action: "deleted" }),
      { says: { action: ["cancel*"] } },
      false,
      1,
    ],
    [
      "a success that says so",
      state("queued"),
      reply(200, { action: "cancelled" }),
      { says: { action: ["cancel*"] } },
      true,
      1,
    ],
    ["a refusal", state("queued"), reply(400, {}), {}, false, 1],
  ])("of %s", async (_, look, answer, more, isTaken, sent) => {
    await using double = await startDeclared([look], answer ? { cancel: answer } : {});
    await using world = await createWorld();
    expect(await world.upstreams.cancel(asked(double, cancel(more)))).toBe(isTaken);
    expect(double.server.seen("cancel")).toHaveLength(sent);
  });

  test("sends its body with the task's values", async () => {
    await using double = await startDeclared([state("queued")]);
    await using world = await createWorld();
    const declared = cancel({ body: { id: "${id}", of: "${model} of ${job}" } });
    expect(await world.upstreams.cancel(asked(double, declared))).toBe(true);
    expect(double.server.seen("cancel")[0]?.body).toEqual({ id: "t1", of: "film-2 of job_1" });
  });

  test("is none without a declaration", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    expect(await world.upstreams.cancel(asked(double, usual))).toBe(false);
    expect(double.server.requests).toHaveLength(0);
  });
});
