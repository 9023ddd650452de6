import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { type Answer, reply, replyText } from "../../../test/support/upstreams/double.ts";
import { createWorld, reference, upstreamKey } from "../media/world.fixture.ts";
import { done, filming, mp4, png, startDeclared, state, taskAt, usual } from "./double.fixture.ts";

describe("a declared upstream", () => {
  test("is asked as the catalog says, and its film is stored", async () => {
    await using double = await filming([state("queued"), state("working", { percent: 41.9 })]);
    await using world = await createWorld();
    const asked = taskAt(double, usual, { references: [reference(png)] });
    const { task, resumeIds, progress, sendings } = world.task(asked);
    const [output] = await world.upstreams.generate(task);
    expect(await world.stored(output?.blobKey ?? "")).toEqual(mp4);
    const [sent] = double.server.seen("create");
    expect(sent?.path).toBe("/v1/videos/film-2");
    expect(sent?.headers.authorization).toBe(`Bearer ${upstreamKey}`);
    expect(sent?.body).toEqual({
      ...{ model: "film-2", prompt: "waves", n: "job_1" },
      first: { data: png.toString("base64"), type: "image/png" },
    });
    expect(double.server.seen("look")[0]?.path).toBe("/v1/tasks/t%2F1");
    expect(resumeIds.map((id) => JSON.parse(id))).toEqual([{ model: "film-2", id: "t/1" }]);
    expect([progress, sendings]).toEqual([[41], [1]]);
    // Files need no key, and get none.
    expect(double.files.seen("file")[0]?.headers.authorization).toBeUndefined();
  });

  test("is not asked to begin again by a later attempt", async () => {
    await using double = await filming();
    await using world = await createWorld();
    const resumeId = JSON.stringify({ model: "film-2", id: "t/1" });
    await world.upstreams.generate(world.task(taskAt(double, usual, { resumeId })).task);
    expect(double.server.seen("create")).toHaveLength(0);
  });

  test("names tasks by integers of 64 bits", async () => {
    await using double = await filming();
    await using world = await createWorld();
    const raw = '{"data":{"task_id":9223372036854775807}}';
    double.server.next("create", replyText(200, raw));
    await world.upstreams.generate(world.task(taskAt(double)).task);
    expect(double.server.seen("look")[0]?.path).toBe("/v1/tasks/9223372036854775807");
  });

  test.each([
    {},
    { data: { task_id: "" } },
    { data: { task_id: "x".repeat(301) } },
    { data: { task_id: { a: 1 } } },
  ])("fails where it names no task: %j", async (body) => {
    await using double = await startDeclared();
    await using world = await createWorld();
    double.server.next("create", reply(200, body));
    const { task, resumeIds } = world.task(taskAt(double));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    expect([resumeIds, double.server.requests.length]).toEqual([[], 1]);
  });

  test.each(["..", "a/../b", "a//b"])("is asked nowhere else by an id: %s", async (id) => {
    await using double = await startDeclared();
    await using world = await createWorld();
    double.server.next("create", reply(200, { data: { task_id: id } }));
    const declared = { ...usual, poll: { get: "/tasks/${id:path}", state: "status" } };
    const { task } = world.task(taskAt(double, declared));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
    expect(double.server.requests).toHaveLength(1);
  });
});

describe("the answer to the request that begins a task", () => {
  const error = (code: unknown) => ({ error: { code } });
  test.each<[string, Answer, object]>([
    ["a refusal", reply(400, error("ModeratedInput")), { fault: "content_policy" }],
    ["a refusal in a success", reply(200, error("moderation")), { fault: "content_policy" }],
    ["an empty account", reply(429, error(1101)), { fault: "not_taken", refusal: "account_empty" }],
    [
      "a busy declared",
      reply(400, error("BusyNow")),
      { fault: "not_taken", refusal: "too_many_requests" },
    ],
    [
      "a busy declared that failed",
      reply(500, error("busy")),
      { fault: "not_taken", isCertain: true },
    ],
    ["a key that is refused", reply(200, error(1004)), { fault: "not_taken", refusal: "denied" }],
    ["an unsure success", reply(200, error(5000)), { fault: "unknown" }],
    ["another code in a success", reply(200, { code: 7 }), { fault: "failed" }],
    ["401", reply(401, {}), { fault: "not_taken", refusal: "denied" }],
    ["402", reply(402, {}), { fault: "not_taken", refusal: "account_empty" }],
    ["429", reply(429, {}), { fault: "not_taken", refusal: "too_many_requests" }],
    ["503", reply(503, {}), { fault: "not_taken", isCertain: true }],
    ["a failure", reply(500, error("moderation")), { fault: "unknown" }],
    ["a conflict", reply(409, error("moderation")), { fault: "unknown" }],
    [
      "a code that is known everywhere",
      reply(400, error("content_policy_violation")),
      { fault: "content_policy" },
    ],
    ["anything else", reply(422, {}), { fault: "failed" }],
    ["an error in a list", reply(400, [error("ModeratedInput")]), { fault: "content_policy" }],
    ["a lost answer", { kind: "drop" }, { fault: "unknown" }],
  ])("%s", async (_, answer, expected) => {
    await using double = await startDeclared();
    await using world = await createWorld();
    double.server.next("create", answer as never);
    const { task } = world.task(taskAt(double));
    await expect(world.upstreams.generate(task)).rejects.toMatchObject(expected);
    expect(double.server.requests).toHaveLength(1);
    expect(world.logLines.join("")).not.toMatch(/Moderated|BusyNow/);
  });
});

describe("a task that we name", () => {
  const ours = {
    ...usual,
    create: { post: "/videos" },
    poll: { get: "/tasks/${job}", state: "status" },
  };
  test("is stored before it is sent", async () => {
    await using double = await filming();
    await using world = await createWorld();
    const { task, resumeIds } = world.task(taskAt(double, ours));
    double.server.next("create", { kind: "lost" });
    await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
    expect(resumeIds).toHaveLength(1);
    const again = world.task(taskAt(double, ours, { resumeId: resumeIds[0] }));
    await expect(world.upstreams.generate(again.task)).resolves.toHaveLength(1);
    expect(double.server.seen("create")).toHaveLength(1);
  });

  test("is sent again only where it is not there for a minute", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    const missing = [replyText(404), replyText(404), replyText(404)];
    double.server.next("look", ...(missing as never[]), done(double.files) as never);
    const { task } = world.task(taskAt(double, ours, { resumeId: '{"model":"film-2"}' }));
    await expect(world.upstreams.generate(task)).resolves.toHaveLength(1);
    expect(double.server.seen("create")).toHaveLength(1);
    expect(world.pauses.slice(0, 2)).toEqual([30_000, 30_000]);
  });
});

test("a task that we name is not sent again where it was seen and went away", async () => {
  await using double = await startDeclared([state("working"), replyText(404)]);
  await using world = await createWorld();
  const declared = {
    ...usual,
    ...{ create: { post: "/videos" }, poll: { get: "/tasks/${job}", state: "status" } },
  };
  const { task } = world.task(taskAt(double, declared, { resumeId: '{"model":"film-2"}' }));
  await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "failed" });
  expect(double.server.seen("create")).toHaveLength(0);
});

test("a task that we name is never sent again for an answer that does not say that it is not there", async () => {
  await using double = await startDeclared([reply(400, { code: 7 })]);
  await using world = await createWorld();
  const declared = {
    ...usual,
    ...{
      create: { post: "/videos" },
      poll: { get: "/tasks/${job}", state: "status" },
      answers: {},
    },
  };
  const { task } = world.task(taskAt(double, declared, { resumeId: '{"model":"film-2"}' }));
  await expect(world.upstreams.generate(task)).rejects.toMatchObject({ fault: "unknown" });
  expect(double.server.seen("create")).toHaveLength(0);
});

test("a job's id goes as an idempotency key, where the upstream takes one", async () => {
  await using double = await filming();
  await using world = await createWorld();
  const declared = { ...usual, create: { ...usual.create, key: "Idempotency-Key" } };
  await world.upstreams.generate(world.task(taskAt(double, declared)).task);
  expect(double.server.seen("create")[0]?.headers["idempotency-key"]).toBe("job_1");
});

test("a header may be another UUID in each request, and in each try of it", async () => {
  await using double = await filming([replyText(503), state("working")]);
  await using world = await createWorld();
  const declared = {
    ...usual,
    headers: { "X-Trace": "${uuid}", "X-Step": "all" },
    create: { ...usual.create, key: "x-trace" },
    poll: { ...usual.poll, headers: { "x-step": "look-${uuid}" } },
  };
  await world.upstreams.generate(world.task(taskAt(double, declared)).task);
  const [created] = double.server.seen("create");
  expect([created?.headers["x-trace"], created?.headers["x-step"]]).toEqual(["job_1", "all"]);
  const looks = double.server.seen("look").map(({ headers }) => headers);
  const ids = looks.flatMap((one) => [one["x-trace"], one["x-step"]]);
  expect([looks.length, new Set(ids).size]).toEqual([3, 6]);
  for (const id of ids) expect(id).toMatch(/^(look-)?[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/);
});

test("a token is signed for each request", async () => {
  await using double = await filming();
  const world = await createWorld({
    secrets: (name) => ({ UPSTREAM_KEY: "secret", ISSUER: "access" })[name],
  });
  await using _world = world;
  const auth = { jwt: "HS256", issuerEnv: "ISSUER", seconds: 1_800 };
  await world.upstreams.generate(world.task(taskAt(double, { ...usual, auth })).task);
  const token =
    double.server.seen("create")[0]?.headers.authorization?.replace("Bearer ", "") ?? "";
  const [head = "", claims = "", signature] = token.split(".");
  const read = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  expect(read(head)).toEqual({ alg: "HS256", typ: "JWT" });
  const { iss, exp, nbf } = read(claims);
  expect([iss, exp - nbf]).toEqual(["access", 1_805]);
  expect(signature).toBe(
    createHmac("sha256", "secret").update(`${head}.${claims}`).digest("base64url"),
  );
});

test("a look goes to the host that the answer names, and to no other", async () => {
  await using double = await filming();
  await using other = await startDeclared();
  await using world = await createWorld();
  const declared = {
    ...usual,
    create: { post: "/videos", take: { url: "polling_url" } },
    poll: { get: "${url}", state: "status" },
  };
  const at = (origin: string) => reply(200, { polling_url: `${origin}/v1/tasks/7` });
  double.server.next("create", at(double.server.origin), at(other.server.origin));
  await expect(
    world.upstreams.generate(world.task(taskAt(double, declared)).task),
  ).resolves.toHaveLength(1);
  await expect(
    world.upstreams.generate(world.task(taskAt(double, declared)).task),
  ).rejects.toMatchObject({ fault: "failed" });
  expect(other.server.requests).toHaveLength(0);
});
