import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { openRaw } from "../edge/raw.ts";

// A caller that leaves before its upstream's usage has not seen everything: silence, images, bytes in the kernels' buffers.

ownWorldOnly();

const roomy = { maxInputTokens: 400_000, maxOutputTokens: 50_000 };
const tiles = { base: 2_833, each: 5_667 };
const names = ["unsaid", "seeing", "stalled", "described"];
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      ...names.map((name) => chat(name, roomy)),
      chat("said", { ...roomy, hiddenTokensPerSecond: 200 }),
      chat("tiled", { ...roomy, imageTiles: tiles }),
      chat("large-images", { ...roomy, imageTokensAtLeast: 2_800 }),
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

/** Leaves a JSON request of this model after a time. Answers its charge, and how long the request was open. */
async function leaveJson(
  model: string,
  afterMs: number,
  bound: { max_output_tokens?: number } = {},
): Promise<{ cost: number; ms: number }> {
  const caller = await newCaller();
  const fromMs = performance.now();
  const asked = Promise.withResolvers<void>();
  const seen = world.play({ kind: "custom", handle: () => asked.resolve() });
  const leaving = new AbortController();
  const asking = { model, input: "Hi", ...bound };
  const answer = caller.post("/responses", asking, { signal: leaving.signal });
  answer.catch(() => {});
  await asked.promise;
  await delay(afterMs);
  leaving.abort();
  await seen[0]?.over;
  const ms = performance.now() - fromMs;
  return { cost: await spent(caller), ms };
}

describe("a JSON request that is left", () => {
  test("pays for its silence what the catalog says, and no more than its hold", async () => {
    const { cost, ms } = await leaveJson("said", 1_000);
    expect(cost).toBeGreaterThan(190 * outputPrice);
    expect(cost).toBeLessThan(0.3 * ms * outputPrice);
    const bounded = await leaveJson("said", 1_000, { max_output_tokens: 50 });
    expect(bounded.cost).toBeGreaterThanOrEqual(50 * outputPrice);
    expect(bounded.cost).toBeLessThan(100 * outputPrice);
  });

  test("pays for its input alone where the catalog says nothing, whatever other answers showed", async () => {
    const caller = await newCaller();
    world.play(streaming(created, say(" sea"), completed(20_000)));
    await caller.stream("/responses", { model: "unsaid", input: "Hi" });
    const { cost } = await leaveJson("unsaid", 2_500);
    expect(cost).toBeGreaterThan(0);
    expect(cost).toBeLessThan(60);
  });
});

test("what had come all at once is paid for, though its caller leaves at its first word", async () => {
  const caller = await newCaller();
  // Some 700 KB, which sockets can hold though their caller does not read.
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
  const stream = await caller.open("/responses", { model: "unsaid", input: "Hi" });
  await stream.until(({ data }) => data.includes(" sea"));
  await came.promise;
  stream.leave();
  expect(await spent(caller)).toBeGreaterThanOrEqual(0.9 * words * outputPrice);
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
  // All bytes are in buffers, and the reader has stalled for long.
  await Promise.race([ended.promise, delay(5_000)]);
  await delay(2_000);
  raw.socket.resetAndDestroy();
  await seen[0]?.over;
  expect(await spent(caller)).toBe(10 + 20_000 * outputPrice);
});
