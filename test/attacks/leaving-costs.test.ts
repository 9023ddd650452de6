import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// A caller leaves on purpose before its upstream's usage. It pays at least nine tenths of the visible part.

ownWorldOnly();

const roomy = {
  ...{ maxInputTokens: 200_000, maxOutputTokens: 50_000 },
  ...{ reasoningEfforts: [], reasoningAliases: {} },
};
const names = ["digits", "unsaid"];
const claude = (name: string) => ({
  ...{ ...roomy, upstream: "claude" },
  ...(name === "swift" && { hiddenTokensPerSecond: 2_000 }),
});
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    upstreams: {
      ...usual.upstreams,
      claude: { ...usual.upstreams.main, protocol: "anthropic" },
    },
    models: [
      ...usual.models,
      ...names.map((name) => chat(name, roomy)),
      ...names.map((name) => chat(`${name}-legacy`, { ...roomy, upstream: "legacy" })),
      ...[...names, "swift"].map((name) => chat(`${name}-claude`, claude(name))),
      chat("swift", { ...roomy, hiddenTokensPerSecond: 2_000 }),
      chat("swift-legacy", { ...roomy, hiddenTokensPerSecond: 2_000, upstream: "legacy" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const inputPrice = pricing.inputUsdMicrosPerMillionTokens / 1_000_000;
const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
const spent = async (caller: Caller) => Number((await caller.settled()).monthSpend);
const newCaller = () => world.caller({ usdMicros: 100_000_000n });

type Part = string | number | (() => string);
function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
const usageOf = (output: number, details = {}) => ({
  ...{ input_tokens: 1, output_tokens: output, total_tokens: output + 1 },
  output_tokens_details: details,
});

const responses = {
  suffix: "",
  begin: event("response.created", { response: { ...response, status: "in_progress" } }),
  say: (delta: string) =>
    event("response.output_text.delta", {
      ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta },
    }),
  end: (output: number) =>
    event("response.completed", {
      response: { ...response, status: "completed", usage: usageOf(output) },
    }),
};
const userTurn = (content: string) => ({ messages: [{ role: "user", content }] });

/** The events of each protocol for the same output. */
const protocols = [
  { ...responses, name: "responses", path: "/responses", body: (input: string) => ({ input }) },
  {
    ...{ ...responses, name: "messages", path: "/messages" },
    body: (content: string) => ({ ...userTurn(content), max_tokens: 50_000 }),
  },
  {
    ...{ name: "responses at an upstream of Messages", path: "/responses", suffix: "-claude" },
    body: (input: string) => ({ input }),
    begin:
      event("message_start", { message: { id: "msg_1", content: [] } }) +
      event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
    say: (text: string) =>
      event("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  },
  {
    name: "chat",
    path: "/chat/completions",
    suffix: "-legacy",
    body: userTurn,
    begin: chunk({ delta: { role: "assistant" } }),
    say: (content: string) => chunk({ delta: { content } }),
    end: (output: number) =>
      chunk({ delta: {}, finish_reason: "stop" }, { prompt_tokens: 1, completion_tokens: output }) +
      "data: [DONE]\n\n",
  },
];

function chunk(choice: object, usage: object | null = null): string {
  const head = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
  const choices = [{ index: 0, finish_reason: null, ...choice }];
  return `data: ${JSON.stringify({ ...head, choices, usage })}\n\n`;
}

function play(...parts: Part[]) {
  return world.play({
    kind: "custom",
    async handle(_seen: unknown, answer: ServerResponse) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.flushHeaders();
      for (const part of parts) {
        if (typeof part === "number") await delay(part);
        else answer.write(typeof part === "string" ? part : part());
      }
      if (parts.some((part) => typeof part === "string" && part.includes("[DONE]"))) answer.end();
    },
  });
}

describe.for(protocols)("leaving a stream of $name", ({ path, suffix, body, ...protocol }) => {
  const ask = (model: string, input = "Hi") => ({ model: `${model}${suffix}`, ...body(input) });
  /** Leaves once the text has arrived. Answers the charge. */
  const leave = async (model: string, until: string, input?: string) => {
    const caller = await newCaller();
    const stream = await caller.open(path, ask(model, input));
    await stream.until(({ data }) => data.includes(until));
    stream.leave();
    return spent(caller);
  };

  test("pays for output that upstream makes more tokens of than we do", async () => {
    const digits = Array.from({ length: 300 }, (_, at) =>
      `${(at * 7_919) % 10_000}`.padStart(10, "3"),
    );
    play(protocol.begin, ...digits.map(protocol.say), protocol.say(" sea"));
    const cost = await leave("digits", " sea");
    expect(cost).toBeGreaterThanOrEqual(0.9 * 3_000 * outputPrice);
    expect(cost).toBeLessThan(1.1 * 3_000 * outputPrice);
  });

  test("pays for input of that kind", async () => {
    play(protocol.begin, protocol.say(" sea"));
    const input = "31415926535897932384".repeat(2_000);
    const cost = await leave("digits", " sea", input);
    expect(cost).toBeGreaterThanOrEqual(0.9 * 40_000 * inputPrice);
    expect(cost).toBeLessThan(1.1 * 40_000 * inputPrice);
  });

  test("never pays more than the bound", async () => {
    play(protocol.begin, protocol.say("1".repeat(900)), protocol.say(" sea"));
    const caller = await newCaller();
    const bound = path === "/responses" ? { max_output_tokens: 500 } : { max_tokens: 500 };
    const stream = await caller.open(path, { ...ask("digits"), ...bound });
    await stream.until(({ data }) => data.includes(" sea"));
    stream.leave();
    expect(await spent(caller)).toBeLessThan(500 * outputPrice + 40);
  });

  test("pays for the silence of a fast model what its catalog says that it makes", async () => {
    const perMs = 2;
    let fromMs = 0;
    const made = () => Math.round(perMs * (performance.now() - fromMs));
    const begin = () => {
      fromMs = performance.now();
      return protocol.begin;
    };
    let used = 0;
    play(begin, 2_000, () => {
      used = made();
      return protocol.say(" sea");
    });
    expect(await leave("swift", " sea")).toBeGreaterThanOrEqual(0.9 * used * outputPrice);
  });

  test("pays for a long pause within its text, too", async () => {
    play(protocol.begin, protocol.say("Well,"), 2_500, protocol.say(" sea"));
    expect(await leave("swift", " sea")).toBeGreaterThan(0.9 * 5_000 * outputPrice);
  });

  test("pays for no silence where the catalog says nothing of it", async () => {
    play(protocol.begin, 2_500, protocol.say("Well,"), 2_500, protocol.say(" sea"));
    expect(await leave("unsaid", " sea")).toBeLessThan(40 * outputPrice);
  });
});
