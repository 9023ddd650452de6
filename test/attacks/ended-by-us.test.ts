import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// Answers that genmesh itself ends, at a bound or a timeout, were delivered until then. They cost as much as if their caller had left
// there.

ownWorldOnly();

const baseUrlOf = (upstream: unknown) => (upstream as { baseUrl: string }).baseUrl;
const roomy = {
  ...{ maxInputTokens: 100_000, maxOutputTokens: 100_000 },
  ...{ reasoningEfforts: [], reasoningAliases: {}, hiddenTokensPerSecond: 2_000 },
};
const world = await startWorld({
  catalog: (usual) => {
    const main = baseUrlOf(usual.upstreams.main);
    const legacy = baseUrlOf(usual.upstreams.legacy);
    const short = { timeoutMs: 6_000 };
    const silent = { idleTimeoutMs: 1_500 };
    return {
      ...usual,
      upstreams: {
        ...usual.upstreams,
        short: { protocol: "openai", baseUrl: main, ...short },
        silent: { protocol: "openai", baseUrl: main, ...silent },
        "short-legacy": { protocol: "chat-completions", baseUrl: legacy, ...short },
        "silent-legacy": { protocol: "chat-completions", baseUrl: legacy, ...silent },
      },
      models: [
        ...usual.models,
        chat("roomy", roomy),
        ...["short", "silent", "short-legacy", "silent-legacy"].map((upstream) =>
          chat(upstream, { ...roomy, upstream }),
        ),
      ],
    };
  },
});
afterAll(() => world[Symbol.asyncDispose]());

const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
const newCaller = () => world.caller({ usdMicros: 100_000_000n });
const spent = async (caller: Caller) => Number((await caller.settled()).monthSpend);

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
function chunk(delta: object): string {
  const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
  return `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, finish_reason: null }] })}\n\n`;
}
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
const created = event("response.created", { response: { ...response, status: "in_progress" } });
const say = (delta: string) =>
  event("response.output_text.delta", {
    ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta },
  });
const call = (at: number) =>
  event("response.output_item.done", {
    output_index: at,
    item: {
      ...{ id: `fc_${at}`, type: "function_call", call_id: `call_${at}`, status: "completed" },
      ...{ name: "tide", arguments: '{"harbour":"Cuxhaven","day":"Monday"}' },
    },
  });

/** Streams parts. A number is a pause in ms. */
function play(isOver: boolean, ...parts: (string | number)[]) {
  return world.play({
    kind: "custom",
    async handle(_seen: unknown, answer: ServerResponse) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.flushHeaders();
      for (const part of parts) {
        if (answer.destroyed) return;
        if (typeof part === "number") await delay(part);
        else answer.write(part);
      }
      if (isOver) answer.end();
    },
  });
}

describe("more items than an answer may have", () => {
  test("cost what came of them", async () => {
    const caller = await newCaller();
    play(true, created, ...Array.from({ length: 1_100 }, (_, at) => call(at)));
    const events = await caller.stream("/responses", { model: "roomy", input: "Hi" });
    const delivered = events.filter(({ data }) => data.includes("Cuxhaven")).length;
    expect(delivered).toBeGreaterThan(900);
    // The text of the arguments has a dozen tokens.
    expect(await spent(caller)).toBeGreaterThan(10_000 * outputPrice);
  });

  test.for(["/responses", "/chat/completions"])(
    "in one event: %s",
    { timeout: 240_000 },
    async (path) => {
      const caller = await newCaller();
      const content = Array.from({ length: 2_000 }, () => ({ type: "output_text", text: "t" }));
      const item = { id: "msg_2", type: "message", role: "assistant", content };
      const full = event("response.output_item.done", { output_index: 1, item });
      play(true, created, say(" word".repeat(400)), full);
      const isChat = path !== "/responses";
      const asked = isChat ? { messages: [{ role: "user", content: "Hi" }] } : { input: "Hi" };
      await caller.stream(path, { model: "roomy", ...asked });
      expect(await spent(caller)).toBeGreaterThanOrEqual(400 * outputPrice);
    },
  );

  test("cost what upstream reported", async () => {
    const caller = await newCaller();
    const usage = { input_tokens: 1, output_tokens: 5_000, total_tokens: 5_001 };
    const last = event("response.completed", { response: { ...response, usage } });
    play(true, created, ...Array.from({ length: 1_100 }, (_, at) => call(at)), last);
    await caller.stream("/responses", { model: "roomy", input: "Hi" });
    expect(await spent(caller)).toBe(1 + 5_000 * outputPrice);
  });
});

const protocols = [
  {
    ...{ name: "responses", suffix: "", path: "/responses", asked: { input: "Hi" } },
    ...{ begin: created, say },
  },
  {
    ...{ name: "chat", suffix: "-legacy", path: "/chat/completions" },
    asked: { messages: [{ role: "user", content: "Hi" }] },
    ...{ begin: chunk({ role: "assistant" }), say: (content: string) => chunk({ content }) },
  },
];

describe.for(protocols)("a time-out of ours, $name", ({ path, asked, suffix, ...protocol }) => {
  const words = protocol.say(" word".repeat(400));
  const ask = async (model: string, ...parts: (string | number)[]) => {
    const caller = await newCaller();
    play(false, protocol.begin, ...parts);
    const events = await caller.stream(path, { model: `${model}${suffix}`, ...asked });
    expect(events.some(({ data }) => data.includes("upstream_timeout"))).toBe(true);
    // The last event of a response repeats the whole text.
    const isSaid = ({ data }: { data: string }) =>
      data.includes(" word") && !data.includes("upstream_timeout");
    const said = 400 * events.filter(isSaid).length;
    return { cost: await spent(caller), said };
  };

  test("of the whole stream leaves what it said to be paid for", async () => {
    const parts = Array.from({ length: 14 }, () => [words, 500]).flat();
    const { cost, said } = await ask("short", ...parts);
    expect(said).toBeGreaterThanOrEqual(1_200);
    expect(cost).toBeGreaterThanOrEqual(0.9 * said * outputPrice);
    // The upstream's tokenizer may count more tokens of the text. The input is added.
    expect(cost).toBeLessThan((1.15 * said + 500) * outputPrice);
  });

  test("of silence leaves what it said to be paid for, and no silence", async () => {
    const { cost } = await ask("silent", words);
    expect(cost).toBeGreaterThanOrEqual(400 * outputPrice);
    expect(cost).toBeLessThan((1.15 * 400 + 100) * outputPrice);
  });

  test("before the first output costs nothing", async () => {
    expect((await ask("silent")).cost).toBe(0);
  });
});
