import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// Input includes the texts that hosted tools read. A caller that leaves must not get them for the price of its own words.

ownWorldOnly();

const window = 100_000;
const roomy = { maxInputTokens: window, maxOutputTokens: 10_000, tools: ["*"] };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    upstreams: { ...usual.upstreams, impatient: { ...usual.upstreams.main, idleTimeoutMs: 1_000 } },
    models: [
      ...usual.models,
      chat("searcher", roomy),
      chat("searcher-legacy", { ...roomy, upstream: "legacy" }),
      chat("impatient", { ...roomy, upstream: "impatient" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const inputPrice = pricing.inputUsdMicrosPerMillionTokens / 1_000_000;
const perCall = 20_000;
const newCaller = () => world.caller({ usdMicros: 100_000_000n });
const spent = async (caller: Caller) => Number((await caller.settled()).monthSpend);
const event = (type: string, fields: object) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
const created = event("response.created", { response: { ...response, status: "in_progress" } });
const say = (delta: string) =>
  event("response.output_text.delta", {
    ...{ item_id: "msg_1", output_index: 9, content_index: 0, delta },
  });
const called = (type: string, at: number) =>
  ["added", "done"].map((when) =>
    event(`response.output_item.${when}`, {
      output_index: at,
      item: { id: `${type}_${at}`, type, status: "completed" },
    }),
  );
const chunk = `data: ${JSON.stringify({
  ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "up" },
  choices: [{ index: 0, delta: { role: "assistant", content: " sea" }, finish_reason: null }],
})}\n\n`;

function play(isOver: boolean, ...parts: string[]) {
  return world.play({
    kind: "custom",
    async handle(_seen: unknown, answer: ServerResponse) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      for (const part of parts) answer.write(part);
      if (isOver) answer.end();
    },
  });
}
const messages = [{ role: "user", content: "Hi" }];
const search = { type: "web_search" };
const leave = async (path: string, asked: object) => {
  const caller = await newCaller();
  const stream = await caller.open(path, asked);
  await stream.until(({ data }) => data.includes(" sea"));
  stream.leave();
  return spent(caller);
};

test.for([
  ["/responses", { input: "Hi", tools: [search] }],
  ["/chat/completions", { messages, web_search_options: {} }],
] as const)("each call that was seen is paid for on leaving: %s", async ([path, asked]) => {
  const calls = [...called("web_search_call", 0), ...called("mcp_call", 1)];
  play(false, created, ...calls, ...called("function_call", 2), say(" sea"));
  const cost = await leave(path, { model: "searcher", ...asked });
  expect(cost).toBeGreaterThanOrEqual(2 * perCall * inputPrice);
  expect(cost).toBeLessThan(2.2 * perCall * inputPrice + 2_000);
});

test("a tool that was not called costs nothing", async () => {
  play(false, created, say(" sea"));
  const cost = await leave("/responses", { model: "searcher", input: "Hi", tools: [search] });
  expect(cost).toBeLessThan(0.5 * perCall * inputPrice);
});

test("a whole answer without usage pays for its calls, never more than the window", async () => {
  const items = (calls: number) => [
    ...Array.from({ length: calls }, (_, at) => ({ id: `ws_${at}`, type: "web_search_call" })),
    { id: "m", type: "message", role: "assistant", content: [{ type: "output_text", text: "a" }] },
  ];
  for (const calls of [2, 50]) {
    const caller = await newCaller();
    world.play({ kind: "json", body: { ...response, status: "completed", output: items(calls) } });
    const asked = { model: "searcher", input: "Hi", tools: [search] };
    const { json } = await caller.post("/responses", asked);
    const paid = Math.min(calls * perCall, window);
    expect(json.usage.input_tokens).toBeGreaterThanOrEqual(paid);
    expect(json.usage.input_tokens).toBeLessThanOrEqual(Math.min(paid + 200, window));
  }
});

test("where no call can be seen the whole window is paid for: chat", async () => {
  play(false, chunk);
  const asked = { model: "searcher-legacy", messages, web_search_options: {} };
  expect(await leave("/chat/completions", asked)).toBeGreaterThanOrEqual(window * inputPrice);
});

test.for([
  ["/responses", { input: "Hi", tools: [search] }],
  ["/responses/compact", { input: "Hi", tools: [search] }],
] as const)("where no call can be seen the whole window is paid for: JSON, %s", async (way) => {
  const [path, asked] = way;
  const caller = await newCaller();
  const sent = Promise.withResolvers<void>();
  const seen = world.play({ kind: "custom", handle: () => sent.resolve() });
  const leaving = new AbortController();
  const answer = caller.post(path, { model: "searcher", ...asked }, { signal: leaving.signal });
  answer.catch(() => {});
  await Promise.race([sent.promise, delay(5_000)]);
  leaving.abort();
  await seen[0]?.over;
  expect(await spent(caller)).toBeGreaterThanOrEqual(window * inputPrice);
});

test("calls that were seen before we gave up on upstream are paid for", async () => {
  const caller = await newCaller();
  play(false, created, ...called("web_search_call", 0), ...called("web_search_call", 1));
  const asked = { model: "impatient", input: "Hi", tools: [search] };
  const events = await caller.stream("/responses", asked);
  expect(events.map(({ name }) => name)).toContain("response.failed");
  expect(await spent(caller)).toBeGreaterThanOrEqual(2 * perCall * inputPrice);
});
