import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { openRaw } from "../edge/raw.ts";

// What a caller that leaves before its upstream tells what it used left unseen: fast thought, images, what lay in the kernels.

ownWorldOnly();

const roomy = {
  ...{ maxInputTokens: 400_000, maxOutputTokens: 50_000 },
  tokensPerSecond: undefined,
};
const tiles = { base: 2_833, each: 5_667 };
const names = ["fresh", "taught", "wordy", "stalled", "described"];
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      ...names.map((name) => chat(name, roomy)),
      chat("unthinking", { ...roomy, reasoningEfforts: [], reasoningAliases: {} }),
      chat("glyphs", { ...roomy, reasoningEfforts: [], reasoningAliases: {} }),
      chat("known", { ...roomy, tokensPerSecond: 200 }),
      chat("seeing", { ...roomy, tokensPerSecond: 1 }),
      chat("tiled", { ...roomy, tokensPerSecond: 1, imageTiles: tiles }),
      chat("large-images", { ...roomy, tokensPerSecond: 1, imageTokensAtLeast: 2_800 }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
const spent = async (caller: Caller) => Number((await caller.settled()).monthSpend);
const newCaller = () => world.caller({ usdMicros: 100_000_000n });
/** A PNG of one pixel. */
const dot =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
const created = event("response.created", { response: { ...response, status: "in_progress" } });
const say = (delta: string) =>
  event("response.output_text.delta", {
    ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta },
  });
const usageOf = (input: number, output: number) => ({
  ...{ input_tokens: input, output_tokens: output, total_tokens: input + output },
});
const completed = (output: number) =>
  event("response.completed", {
    response: { ...response, status: "completed", usage: usageOf(10, output) },
  });

function streaming(...parts: (string | number)[]) {
  return {
    kind: "custom",
    async handle(_seen: unknown, answer: ServerResponse) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.flushHeaders();
      for (const part of parts) {
        if (typeof part === "number") await delay(part);
        else answer.write(part);
      }
    },
  } as const;
}

// The first count of a process starts its thread.
beforeAll(async () => {
  const caller = await newCaller();
  world.play({ kind: "ok", usage: null });
  await caller.post("/responses", { model: "seeing", input: "Hi" });
});

/** Leaves a JSON request of this model after so many ms; what it cost, and how long it was open. */
async function leaveJson(model: string, afterMs: number): Promise<{ cost: number; ms: number }> {
  const caller = await newCaller();
  const fromMs = performance.now();
  const asked = Promise.withResolvers<void>();
  const seen = world.play({ kind: "custom", handle: () => asked.resolve() });
  const leaving = new AbortController();
  const answer = caller.post("/responses", { model, input: "Hi" }, { signal: leaving.signal });
  answer.catch(() => {});
  await asked.promise;
  await delay(afterMs);
  leaving.abort();
  await seen[0]?.over;
  const ms = performance.now() - fromMs;
  return { cost: await spent(caller), ms };
}

describe("silence of a model that nothing is known of may be that of the fastest", () => {
  test("where its answer is JSON", async () => {
    // A second of a model that makes 2,000 tokens a second.
    const { cost } = await leaveJson("fresh", 1_000);
    expect(cost).toBeGreaterThanOrEqual(0.9 * 2_000 * outputPrice);
  });

  test("and other answers tell nothing of it: their callers decide what they wait for", async () => {
    const caller = await newCaller();
    // With the wait they seem to be made at 200 tokens a second.
    world.play(streaming(created, 1_000, say(" sea".repeat(300)), completed(400)));
    await caller.stream("/responses", { model: "taught", input: "Hi" });
    const whole = { ...response, status: "completed", usage: usageOf(10, 2_000) };
    world.play({
      kind: "custom",
      async handle(_seen, answer) {
        await delay(1_500);
        answer.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(whole));
      },
    });
    await caller.post("/responses", { model: "taught", input: "Hi" });
    const { cost } = await leaveJson("taught", 1_000);
    expect(cost).toBeGreaterThanOrEqual(0.9 * 4_000 * outputPrice);
  });

  test("nor do answers that were long in coming make a long silence usual", async () => {
    const caller = await newCaller();
    world.play(streaming(created, 2_200, say(" sea"), completed(1)));
    const asked = { model: "unthinking", input: "Hi" };
    await Promise.all([1, 2, 3, 4].map(() => caller.stream("/responses", asked)));
    const before = await spent(caller);
    world.play(streaming(created, 2_500, say(" sea"), 60_000));
    const stream = await caller.open("/responses", asked);
    await stream.until(({ data }) => data.includes(" sea"));
    stream.leave();
    expect((await spent(caller)) - before).toBeGreaterThanOrEqual(0.9 * 10_000 * outputPrice);
  });

  test("nor does text that takes several tokens for a character prove a thought", async () => {
    const caller = await newCaller();
    const asked = { model: "glyphs", input: "Hi" };
    for (let answers = 0; answers < 3; answers++) {
      world.play(streaming(created, say("\u{1f469}".repeat(100)), completed(300)));
      await caller.stream("/responses", asked);
    }
    const before = await spent(caller);
    // Far below the long silence that is thought all the same.
    world.play(streaming(created, 300, say(" sea"), 60_000));
    const stream = await caller.open("/responses", asked);
    await stream.until(({ data }) => data.includes(" sea"));
    stream.leave();
    expect((await spent(caller)) - before).toBeLessThan(40 * outputPrice);
  });

  test("nor does silence within an answer make its own text slow", async () => {
    const caller = await newCaller();
    const words = Array.from({ length: 10 }, () => [say(" sea".repeat(10)), 30]).flat();
    const thought = event("response.output_item.done", {
      ...{ output_index: 0, item: { id: "rs_1", type: "reasoning", summary: [] } },
    });
    world.play(streaming(created, ...words, thought, 1_900, say(" END"), 60_000));
    const stream = await caller.open("/responses", { model: "fresh", input: "Hi" });
    await stream.until(({ data }) => data.includes("END"));
    stream.leave();
    // Some 400 bytes in 300 ms, and then thought for 1.9 s.
    expect(await spent(caller)).toBeGreaterThanOrEqual(1.9 * 460 * outputPrice);
  });

  test("but of one whose text was read it is taken for what that shows", async () => {
    const caller = await newCaller();
    const words = Array.from({ length: 20 }, () => [say(" seaside words"), 50]).flat();
    world.play(streaming(created, 1_000, ...words, say(" END"), 60_000));
    const askedAtMs = performance.now();
    const stream = await caller.open("/responses", { model: "wordy", input: "Hi" });
    await stream.until(({ data }) => data.includes("seaside"));
    const firstMs = performance.now() - askedAtMs;
    await stream.until(({ data }) => data.includes("END"));
    stream.leave();
    // Some 40 words at no more than 14 bytes in 50 ms, and a second of silence, which might be 4,000 tokens.
    expect(await spent(caller)).toBeLessThan((300 + 0.3 * firstMs) * outputPrice);
  });
});

test("what had come all at once is paid for, though its caller leaves at its first word", async () => {
  const caller = await newCaller();
  // Some 700 KB, which sockets take though their caller does not read.
  const words = 6_000;
  const text = created + say(" sea").repeat(words);
  const came = Promise.withResolvers<unknown>();
  world.play({
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(text, came.resolve);
    },
  });
  const stream = await caller.open("/responses", { model: "known", input: "Hi" });
  await stream.until(({ data }) => data.includes(" sea"));
  await came.promise;
  stream.leave();
  expect(await spent(caller)).toBeGreaterThanOrEqual(0.9 * words * outputPrice);
});

test("what the catalog says of a model's speed counts, however quickly an answer was read", async () => {
  const caller = await newCaller();
  world.play(streaming(created, say(" sea".repeat(500)), 600, say(" sea"), completed(1_000)));
  await caller.stream("/responses", { model: "known", input: "Hi" });
  const { cost, ms } = await leaveJson("known", 1_000);
  expect(cost).toBeGreaterThan(190 * outputPrice);
  expect(cost).toBeLessThan(0.3 * ms * outputPrice);
});

describe("images cost a caller that leaves what a model may make of them", () => {
  const parts = Array.from({ length: 20 }, () => ({ type: "input_image", image_url: dot }));
  const leaving = async (model: string) => {
    const caller = await newCaller();
    world.play(streaming(created, say(" sea"), 60_000));
    const stream = await caller.open("/responses", {
      ...{ model, input: [{ role: "user", content: parts }] },
    });
    await stream.until(({ data }) => data.includes(" sea"));
    stream.leave();
    return spent(caller);
  };

  test.for([
    ["seeing", 1_536],
    ["large-images", 2_800],
    ["tiled", 8_500],
  ] as const)("%s: %d each", async ([model, each]) => {
    const cost = await leaving(model);
    expect(cost).toBeGreaterThanOrEqual(0.9 * 20 * each);
    expect(cost).toBeLessThan(20 * each + 1_000);
  });

  test.for([
    ["seeing", 1],
    ["large-images", 2_800],
    ["tiled", 8_500],
  ] as const)("and a whole answer without usage, by its catalog: %s: %d", async ([model, each]) => {
    const caller = await newCaller();
    world.play({ kind: "ok", usage: null });
    await caller.post("/responses", { model, input: [{ role: "user", content: parts }] });
    const cost = await spent(caller);
    expect(cost).toBeGreaterThanOrEqual(20 * each);
    expect(cost).toBeLessThan(20 * each + 1_000);
  });

  test("and what such a model reports is covered by the hold", async () => {
    const caller = await newCaller();
    world.play({ kind: "ok", usage: usageOf(170_000, 16) });
    await caller.post("/responses", {
      ...{ model: "tiled", input: [{ role: "user", content: parts }], max_output_tokens: 16 },
    });
    expect(await spent(caller)).toBe(170_000 + 16 * outputPrice);
  });
});

test("what upstream says of tools that it knows by their type is covered by the hold", async () => {
  for (const type of ["computer", "local_shell", "apply_patch"]) {
    const caller = await newCaller();
    world.play({ kind: "ok", usage: usageOf(1_500, 16) });
    await caller.post("/responses", {
      ...{ model: "described", input: "Hi", tools: [{ type }], max_output_tokens: 16 },
    });
    expect(await spent(caller)).toBe(1_500 + 16 * outputPrice);
  }
});

test("usage that had arrived behind a stalled reader is charged when it resets", async () => {
  const caller = await newCaller();
  const ended = Promise.withResolvers<void>();
  const padding = "x".repeat(2_000);
  const word = event("response.output_text.delta", {
    ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta: " sea", padding },
  });
  const seen = world.play({
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(created);
      for (let sent = 0; sent < 2_500; sent++) answer.write(word);
      answer.end(completed(20_000), () => ended.resolve());
    },
  });
  const { port } = new URL(world.baseUrl);
  using raw = await openRaw(Number(port));
  const body = JSON.stringify({ model: "stalled", input: "Hi", stream: true });
  raw.send(
    `POST /v1/responses HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ${caller.key}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await raw.until((text) => text.includes("response.output_text.delta"));
  raw.socket.pause();
  // All of it lies in buffers, and the reader has stalled for long.
  await Promise.race([ended.promise, delay(5_000)]);
  await delay(2_000);
  raw.socket.resetAndDestroy();
  await seen[0]?.over;
  expect(await spent(caller)).toBe(10 + 20_000 * outputPrice);
});
