import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ownWorldOnly, startWorld, type World } from "../e2e/world.ts";

/** Output that has no place in the form of the caller's answer, from upstreams that report no usage. */

ownWorldOnly();

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(() => world[Symbol.asyncDispose]());

const thoughts = " the sea was calm and gray".repeat(50);
/** Six each time. */
const thoughtTokens = 300;
/** A token of output costs 4 micros. The input and the few words of the answer together cost less than these. */
const thoughtCost = thoughtTokens * 4;
const opening = 10_000_000;

const chunk = (delta: object, finish: string | null = null) => ({
  id: "c",
  object: "chat.completion.chunk",
  created: 1,
  choices: [{ index: 0, delta, finish_reason: finish }],
});

describe("a stream where JSON was asked for", () => {
  test.each([
    ["thinking", { thinking: thoughts }],
    ["reasoning_details", { reasoning_details: [{ type: "reasoning.text", text: thoughts }] }],
    [
      "sealed reasoning",
      // Three bytes in four digits, and four bytes a token.
      { reasoning_details: [{ type: "reasoning.encrypted", data: "A".repeat(1_600) }] },
    ],
  ])("is charged with what only it shows: %s", async (_, delta) => {
    const caller = await world.caller();
    const events = [chunk(delta), chunk({ content: "Calm." }), chunk({}, "stop")];
    world.play({ kind: "events", events });
    const messages = [{ role: "user", content: "Hi" }];
    const { json } = await caller.post("/chat/completions", { model: "legacy", messages });
    expect(json.choices[0].message.content).toBe("Calm.");
    const { available } = await caller.settled();
    expect(opening - available).toBeGreaterThanOrEqual(thoughtCost);
  });
});

describe("reasoning that upstream streams, and shows again in its last event", () => {
  test.each([
    ["under an index that begins at 1", { output_index: 1 }],
    ["without an index", {}],
  ])("is shown and charged once: %s", async (_, place) => {
    const caller = await world.caller();
    const content = [{ type: "reasoning_text", text: thoughts }];
    const item = { id: "rs", type: "reasoning", summary: [], content };
    const output = [item, { type: "message", content: [{ type: "output_text", text: "Calm." }] }];
    world.play({
      kind: "events",
      events: [
        { type: "response.reasoning_text.delta", ...place, item_id: "rs", delta: thoughts },
        { type: "response.output_item.done", ...place, item },
        { type: "response.completed", response: { id: "r", status: "completed", output } },
      ],
    });
    const messages = [{ role: "user", content: "Hi" }];
    const events = await caller.stream("/chat/completions", { model: "scripted", messages });
    const shown = events.map(({ json }) => json?.choices?.[0]?.delta?.reasoning_content ?? "");
    expect(shown.join("")).toBe(thoughts);
    const { available } = await caller.settled();
    expect(opening - available).toBeLessThan(thoughtCost * 1.5);
  });
});
