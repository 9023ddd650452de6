import type { ServerResponse } from "node:http";
import { afterAll, expect, test } from "vitest";
import { chat } from "./catalog.ts";
import { adminToken, operatorSession } from "./operator-session.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// One request whose usage has every part that may have a price of its own: its charge, and all views of it, show the same numbers.

const perToken = (micros: number) => micros * 1_000_000;
const row = {
  inputUsdMicrosPerMillionTokens: perToken(2),
  cachedInputUsdMicrosPerMillionTokens: perToken(1),
  outputUsdMicrosPerMillionTokens: perToken(10),
  cacheWriteUsdMicrosPerMillionTokens: perToken(3),
  cacheWriteLongUsdMicrosPerMillionTokens: perToken(4),
  audioInputUsdMicrosPerMillionTokens: perToken(20),
};
const double = Object.fromEntries(Object.entries(row).map(([name, price]) => [name, 2 * price]));
const pricing = {
  ...row,
  longInput: [{ aboveInputTokens: 999, ...double }],
  servedTiers: { priority: 200 },
  toolCalls: { web_search: 10_000 },
  toolCallLimit: 3,
  upstreamCost: { inputUsdMicrosPerMillionTokens: 500_000, outputUsdMicrosPerMillionTokens: 0 },
};
const window = { maxInputTokens: 20_000, maxOutputTokens: 1_000, tools: ["web_search"] };

ownWorldOnly();
const world = await startWorld({
  env: { GENMESH_ADMIN_TOKEN: adminToken },
  catalog: (usual) => ({
    ...usual,
    models: [...usual.models, chat("priced", { ...window, pricing })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const usage = {
  input_tokens: 1_000,
  output_tokens: 50,
  total_tokens: 1_050,
  input_tokens_details: {
    cached_tokens: 100,
    cache_write_tokens: 300,
    cache_write_tokens_details: { ttl_30m_tokens: 200, ttl_12h_tokens: 100 },
    audio_tokens: 40,
  },
  output_tokens_details: { reasoning_tokens: 0 },
};
const message = { type: "message", id: "msg_1", role: "assistant", status: "completed" };
const output = [
  { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search" } },
  { ...message, content: [{ type: "output_text", text: "Found.", annotations: [] }] },
];
// (560 × 2 + 40 × 20 + 100 × 1 + 200 × 3 + 100 × 4 + 50 × 10) × 2 for the long input × 2 for the tier, and a search.
const charged = 4 * 3_520 + 10_000;
const parts = {
  inputCacheWriteTokens: 300,
  inputCacheWriteLongTokens: 100,
  inputAudioTokens: 40,
  inputImageTokens: 0,
  outputAudioTokens: 0,
  outputImageTokens: 0,
  toolCalls: { web_search: 1 },
  priceAboveInputTokens: 999,
  servedTier: "priority",
};

const used = {
  num_model_requests: 1,
  input_tokens: 1_000,
  input_cached_tokens: 100,
  input_cache_write_tokens: 300,
  input_cache_write_long_tokens: 100,
  input_audio_tokens: 40,
  input_image_tokens: 0,
  output_tokens: 50,
  output_audio_tokens: 0,
  output_image_tokens: 0,
  tool_calls: 1,
  spentUsdMicros: charged,
};

test("all views of a request show its parts and its one charge", async () => {
  const caller = await world.caller({ usdMicros: 10_000_000n });
  let sent: unknown;
  world.play({
    kind: "custom",
    async handle(seen: { body?: unknown }, answer: ServerResponse) {
      sent = seen.body;
      answer.writeHead(200, { "content-type": "application/json" });
      const found = { id: "resp_1", object: "response", created_at: 1, status: "completed" };
      answer.end(
        JSON.stringify({ ...found, model: "up", output, usage, service_tier: "priority" }),
      );
    },
  });
  const tools = [{ type: "web_search" }];
  const { json } = await caller.post("/responses", { model: "priced", input: "Hi", tools });
  expect(sent).toMatchObject({ max_tool_calls: 3 });
  expect(json.usage).toMatchObject({
    costUsdMicros: charged,
    input_tokens_details: { cached_tokens: 100, cache_write_tokens: 300 },
  });
  expect((await caller.settled()).monthSpend).toBe(charged);
  const { json: listed, text } = await caller.get("/requests");
  expect(listed.data[0]).toMatchObject({ ...parts, costUsdMicros: charged });
  expect(text).not.toMatch(/upstreamCost|main/);
  const today = Math.floor(Date.now() / 86_400_000) * 86_400;
  const query = `/usage?start_time=${today}&group_by[]=model`;
  const { json: page } = await caller.get(query);
  expect(page.data.flatMap(({ results }: { results: object[] }) => results)).toEqual([
    expect.objectContaining(used),
  ]);
  const { text: csv } = await caller.get(`${query}&format=csv`);
  const [head = [], row = []] = csv.split("\r\n").map((line) => line.split(","));
  const cells = Object.fromEntries(head.map((name, i) => [name, Number(row[i])]));
  expect(cells).toMatchObject(used);
  const operator = operatorSession(world);
  await operator.signIn();
  const margins = `/margins?start_time=${today}&group_by=model&group_by=upstream&account=${caller.accountId}`;
  // 1,000 × 0.5 for the input. The operator pays nothing for the rest.
  expect((await operator.get(margins)).json).toEqual({
    ...{ object: "list", next: null },
    data: [
      {
        ...{ object: "margin", day: null, model: "priced", upstream: "main" },
        ...{ requests: 1, spentUsdMicros: charged, spentCredits: 0 },
        ...{ costedRequests: 1, costedUsdMicros: charged, upstreamCostUsdMicros: 500 },
        marginUsdMicros: charged - 500,
      },
    ],
  });
  const byDay = await operator.get(`/margins?start_time=${today}&group_by=day`);
  expect(byDay.json.data).toMatchObject([
    { day: new Date(today * 1_000).toISOString().slice(0, 10), model: null, requests: 1 },
  ]);
  for (const [bad, param] of [
    ["", "start_time"],
    ["start_time=0", "end_time"],
    [`start_time=${today}&end_time=${today}`, "end_time"],
    [`start_time=${today}&group_by=key`, "group_by"],
  ]) {
    const { status, json: refused } = await operator.get(`/margins?${bad}`);
    expect([status, refused.error.param], bad).toEqual([400, param]);
  }
  const none = await operator.get(`/margins?start_time=${today}&account=acct_none`);
  expect(none.status).toBe(404);
  const { json: models } = await caller.get("/models");
  const { upstreamCost: _, ...shown } = pricing;
  const model = models.data.find((one: { id: string }) => one.id === "priced");
  expect(model.pricing).toEqual(shown);
});
