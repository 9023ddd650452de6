import { describe, expect, test } from "vitest";
import { type Answer, reply, replyText } from "../../../test/support/upstreams/double.ts";
import { createWorld } from "../media/world.fixture.ts";
import { filming, startDeclared, state, taskAt, usual } from "./double.fixture.ts";

const busy = { error: { code: "Busy" } };

describe("a look", () => {
  test.each<[string, Answer, string]>([
    ["a failed state", state("failed"), "failed"],
    [
      "a failed state with a code of a refusal",
      state("failed", { error: { code: "moderation" } }),
      "content_policy",
    ],
    ["a refused state", state("moderated"), "content_policy"],
    ["a mark in a task that is done", state("done", { video: { ok: false } }), "content_policy"],
    ["a task that is done without an output", state("done"), "failed"],
    ["a failed mark where the state is unknown", state("odd", { code: 3 }), "failed"],
    ["a refusal with a mark", reply(400, { error: { code: "moderation" } }), "content_policy"],
  ])("%s ends the job", async (_, answer, fault) => {
    await using double = await startDeclared([answer]);
    await using world = await createWorld();
    await expect(world.upstreams.generate(world.task(taskAt(double)).task)).rejects.toMatchObject({
      fault,
    });
  });

  test.each<[string, Answer]>([
    ["an empty body", replyText(202)],
    ["a running state, whatever else it says", state("working", { error: { code: "moderation" } })],
    ["a state that nobody declared", state("Reasoning")],
    ["a busy upstream", state("odd", { error: { code: "Busy" } })],
    ["401", reply(401, { error: { code: "moderation" } })],
    ["429", reply(429, {}, { "retry-after": "2" })],
    ["a failure", reply(502, {})],
    ["a busy upstream, where every other code has failed", reply(200, { code: 7, ...busy })],
    ["a busy upstream in a refusal", reply(400, { code: 7, ...busy })],
    ["a task that is not there yet", replyText(404)],
    ["a task that is not there yet, with a code", reply(404, { code: 1203 })],
    ["a passing 400", reply(400, {})],
    ["a lost connection", { kind: "drop" }],
  ])("%s is followed by another", async (_, answer) => {
    await using double = await filming([answer]);
    await using world = await createWorld();
    await expect(world.upstreams.generate(world.task(taskAt(double)).task)).resolves.toHaveLength(
      1,
    );
    expect(double.server.seen("create")).toHaveLength(1);
  });

  test("that does not find the task for 30 s ends the job", async () => {
    await using double = await startDeclared();
    await using world = await createWorld();
    await expect(world.upstreams.generate(world.task(taskAt(double)).task)).rejects.toMatchObject({
      fault: "failed",
    });
    expect(double.server.seen("look")).toHaveLength(3);
    expect(world.pauses).toEqual([15_000, 15_000]);
  });

  test("is repeated at the declared pace, or as the upstream asks", async () => {
    await using double = await filming([
      state("queued"),
      reply(200, { status: "queued" }, { "retry-after": "7" }),
      state("queued"),
    ]);
    await using world = await createWorld();
    const declared = { ...usual, poll: { ...usual.poll, everyMs: 3_000 } };
    await world.upstreams.generate(world.task(taskAt(double, declared)).task);
    expect(world.pauses).toEqual([3_000, 7_000, 3_000]);
  });

  test("tells an unknown state once, and nothing of a caller's", async () => {
    await using double = await filming([
      state("Reasoning"),
      state("Reasoning"),
      state("say: a red boat!"),
      state("Waves"),
    ]);
    await using world = await createWorld();
    await world.upstreams.generate(world.task(taskAt(double)).task);
    const told = world.logLines.filter((line) => line.includes("unknown state"));
    expect(told).toHaveLength(3);
    expect(told.join("")).toMatch(/Reasoning/);
    expect(told.join("")).not.toMatch(/boat|waves/i);
    // Each look is counted, because an alert needs a count that grows.
    const counted = await world.metrics.readOne("genmesh_upstream_unknown_states_total");
    expect(counted?.values).toEqual([
      expect.objectContaining({ labels: { upstream: "studio" }, value: 4 }),
    ]);
  });
});
