import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
ownWorldOnly();

const messages = [{ role: "user", content: "Hi" }];
const ask = (reasoning: unknown) =>
  caller.post("/responses", { model: "scripted", input: "Hi", reasoning });

describe("an effort", () => {
  // The catalog of these worlds: efforts low, medium, high; aliases fast for low, Deep for high.
  test.for([
    ["low", "low"],
    ["HIGH", "high"],
    ["Medium", "medium"],
    ["fast", "low"],
    ["FAST", "low"],
    ["deep", "high"],
    ["dEEp", "high"],
  ])("%s goes up as %s", async ([sent, effort]) => {
    const seen = world.play();
    const { status } = await ask({ effort: sent, summary: "auto" });
    expect(status).toBe(200);
    expect(seen[0]?.body.reasoning).toEqual({ effort, summary: "auto" });
    await caller.post("/chat/completions", { model: "legacy", messages, reasoning_effort: sent });
    expect(seen[1]?.body.reasoning_effort).toBe(effort);
    await caller.post("/chat/completions", { model: "scripted", messages, reasoning_effort: sent });
    expect(seen[2]?.body.reasoning).toMatchObject({ effort });
  });

  test("that was not sent is not sent up", async () => {
    const seen = world.play();
    for (const reasoning of [undefined, null]) await ask(reasoning);
    for (const reasoning of [{}, { effort: null }, { summary: "auto" }]) await ask(reasoning);
    for (const model of ["legacy", "scripted"]) {
      await caller.post("/chat/completions", { model, messages });
      await caller.post("/chat/completions", { model, messages, reasoning_effort: null });
    }
    expect(seen).toHaveLength(9);
    for (const { body } of seen) {
      expect(body.reasoning ?? {}).not.toHaveProperty("effort");
      expect(body).not.toHaveProperty("reasoning_effort");
    }
  });

  test("that the model does not know is refused, naming those that it does", async () => {
    const seen = world.play();
    for (const effort of ["extreme", "", "none", "low "]) {
      const asked = await ask({ effort });
      expect(refusalOf(asked)).toBe(
        "400 invalid_request_error unsupported_parameter reasoning.effort",
      );
      for (const known of ["low", "medium", "high", "fast", "deep"]) {
        expect(asked.json.error.message.toLowerCase()).toContain(known);
      }
    }
    const chat = { model: "legacy", messages, reasoning_effort: "extreme" };
    const asked = await caller.post("/chat/completions", chat);
    expect(refusalOf(asked)).toBe(
      "400 invalid_request_error unsupported_parameter reasoning_effort",
    );
    expect(asked.json.error.message).toContain("medium");
    expect(seen).toHaveLength(0);
  });

  test("is what GET /models says", async () => {
    const { json } = await caller.get("/models/scripted");
    expect(json.reasoningEfforts).toEqual(["low", "medium", "high"]);
  });
});

test("reasoning deltas pass, and count as output where upstream does not count", async () => {
  const payer = await world.caller();
  const thought = "Let me think about the sea and the sky.";
  const begin = { type: "response.created", response: { id: "resp_1" } };
  const end = { type: "response.completed", response: { id: "resp_1", output: [] } };
  const costOf = async (events: Record<string, unknown>[]) => {
    world.play({ kind: "events", events: [begin, ...events, end] });
    const before = await payer.balance();
    const shown = await payer.stream("/responses", { model: "scripted", input: "Hi" });
    return { cost: before.available - (await payer.settled()).available, shown };
  };
  const silent = await costOf([]);
  const item = { type: "reasoning", id: "rs_1", summary: [] };
  const thinking = await costOf([
    { type: "response.output_item.added", output_index: 0, item },
    {
      type: "response.reasoning_summary_text.delta",
      item_id: "rs_1",
      output_index: 0,
      summary_index: 0,
      delta: thought,
    },
  ]);
  const delta = thinking.shown.find(({ name }) => name === "response.reasoning_summary_text.delta");
  expect(delta?.json.delta).toBe(thought);
  // Ten tokens at 4 micros.
  expect(thinking.cost - silent.cost).toBe(40);
});
