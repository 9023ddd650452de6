import { afterAll, describe, expect, test } from "vitest";
import { refusalOf } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
ownWorldOnly();

// The model `tiny` has a window of 1,000 tokens, 100 of them a margin, and at most 200 of output. " word" is one token.
const words = (count: number) => " word".repeat(count);
const tooLong = (param: string) => `400 invalid_request_error context_length_exceeded ${param}`;
const ask = (input: unknown, fields: object = {}) =>
  caller.post("/responses", { model: "tiny", input, ...fields });

describe("the context window", () => {
  test("holds input, reserved output and margin together", async () => {
    const seen = world.play();
    expect((await ask(words(600))).status).toBe(200);
    expect(refusalOf(await ask(words(710)))).toBe(tooLong("input"));
    // With a smaller bound for output there is more room.
    expect((await ask(words(840), { max_output_tokens: 10 })).status).toBe(200);
    expect(refusalOf(await ask(words(900), { max_output_tokens: 10 }))).toBe(tooLong("input"));
    expect(seen).toHaveLength(2);
  });

  test("counts tokens, not characters", async () => {
    world.play();
    expect(words(600).length).toBeGreaterThan(2_900);
    expect((await ask([{ role: "user", content: words(600) }])).status).toBe(200);
  });

  test("takes in instructions, history, tools and their outputs", async () => {
    world.play();
    const half = words(400);
    const item = (content: string) => ({ role: "user", content });
    const call = { type: "function_call", call_id: "c", name: "f", arguments: "{}" };
    const output = { type: "function_call_output", call_id: "c", output: half };
    const tool = { type: "function", name: "f", description: half };
    for (const [input, fields] of [
      [half, { instructions: half }],
      [[item(half), item(half)], {}],
      [[item(half), call, output], {}],
      [half, { tools: [tool] }],
    ] as const) {
      expect(refusalOf(await ask(input, fields))).toBe(tooLong("input"));
    }
    expect((await ask(half)).status).toBe(200);
  });

  test("takes in the developer prompt", async () => {
    await using wordy = await startWorld({
      catalog: (usual) => ({ ...usual, developerPrompt: `OPERATOR-WORDS${words(500)}` }),
    });
    const someone = await wordy.caller();
    const asked = await someone.post("/responses", { model: "tiny", input: words(300) });

    expect(refusalOf(asked)).toBe(tooLong("input"));
  });

  test("is the same for chat and for compaction", async () => {
    world.play();
    const chat = (count: number) =>
      caller.post("/chat/completions", {
        model: "tiny",
        messages: [{ role: "user", content: words(count) }],
      });
    expect((await chat(600)).status).toBe(200);
    expect(refusalOf(await chat(900))).toBe(tooLong("messages"));
    const compact = { model: "tiny", input: words(900) };
    expect(refusalOf(await caller.post("/responses/compact", compact))).toBe(tooLong("input"));
  });

  test("does not fill up with base64", async () => {
    world.play();
    const { default: sharp } = await import("sharp");
    const create = { width: 64, height: 64, channels: 3, background: "#456" } as const;
    const bytes = await sharp({ create }).png({ compressionLevel: 0 }).toBuffer();
    expect(bytes.length).toBeGreaterThan(10_000);
    const image_url = `data:image/png;base64,${bytes.toString("base64")}`;
    const content = [{ type: "input_image", image_url }];
    expect((await ask([{ role: "user", content }])).status).toBe(200);
  });

  test("what is refused is not charged", async () => {
    const payer = await world.caller();
    await payer.post("/responses", { model: "tiny", input: words(2_000) });
    expect(await payer.balance()).toMatchObject({ available: 10_000_000, reserved: 0 });
  });
});
