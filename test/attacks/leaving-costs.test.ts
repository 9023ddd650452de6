import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// A caller that leaves on purpose before its upstream tells what it used costs no less than nine tenths of that.

ownWorldOnly();

const roomy = {
  ...{ maxInputTokens: 200_000, maxOutputTokens: 50_000 },
  ...{ reasoningEfforts: [], reasoningAliases: {} },
};
const names = ["digits", "unknown", "silent", "shallow"];
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      ...names.map((name) => chat(name, roomy)),
      ...names.map((name) => chat(`${name}-legacy`, { ...roomy, upstream: "legacy" })),
      chat("swift", { ...roomy, tokensPerSecond: 2_000 }),
      chat("swift-legacy", { ...roomy, tokensPerSecond: 2_000, upstream: "legacy" }),
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

/** What both protocols send for the same. */
const protocols = [
  {
    name: "responses",
    path: "/responses",
    suffix: "",
    body: (input: string) => ({ input }),
    begin: event("response.created", { response: { ...response, status: "in_progress" } }),
    say: (delta: string) =>
      event("response.output_text.delta", {
        ...{ item_id: "msg_1", output_index: 0, content_index: 0, delta },
      }),
    end: (output: number) =>
      event("response.completed", {
        response: { ...response, status: "completed", usage: usageOf(output) },
      }),
  },
  {
    name: "chat",
    path: "/chat/completions",
    suffix: "-legacy",
    body: (content: string) => ({ messages: [{ role: "user", content }] }),
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
  /** Leaves once the text has come; what it cost, and how long that took. */
  const leaveTimed = async (model: string, until: string, input?: string) => {
    const caller = await newCaller();
    const askedAtMs = performance.now();
    const stream = await caller.open(path, ask(model, input));
    await stream.until(({ data }) => data.includes(until));
    const ms = performance.now() - askedAtMs;
    stream.leave();
    return { cost: await spent(caller), ms };
  };
  const leave = async (model: string, until: string) => (await leaveTimed(model, until)).cost;

  test("pays for output that upstream makes more tokens of than we do", async () => {
    const digits = Array.from({ length: 300 }, (_, at) =>
      `${(at * 7_919) % 10_000}`.padStart(10, "3"),
    );
    play(protocol.begin, ...digits.map(protocol.say), protocol.say(" sea"));
    const { cost, ms } = await leaveTimed("digits", " sea");
    expect(cost).toBeGreaterThanOrEqual(0.9 * 3_000 * outputPrice);
    // The time before the first text, at 200 tokens a second, may have been thought.
    expect(cost).toBeLessThan((1.1 * 3_000 + 0.2 * ms) * outputPrice);
  });

  test("pays for input of that kind", async () => {
    play(protocol.begin, protocol.say(" sea"));
    const input = "31415926535897932384".repeat(2_000);
    const { cost, ms } = await leaveTimed("digits", " sea", input);
    expect(cost).toBeGreaterThanOrEqual(0.9 * 40_000 * inputPrice);
    expect(cost).toBeLessThan(1.1 * 40_000 * inputPrice + 0.2 * ms * outputPrice);
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

  test("pays for silence where the catalog names no efforts, unless answers showed that there is no thought in it", async () => {
    const silent = (ms = 1_000) => play(protocol.begin, ms, protocol.say(" sea"));
    silent();
    expect(await leave("unknown", " sea")).toBeGreaterThan(190 * outputPrice);

    const whole = (output: number) =>
      play(protocol.begin, protocol.say(" sea"), protocol.end(output), "data: [DONE]\n\n");
    const caller = await newCaller();
    whole(1);
    await caller.stream(path, ask("shallow"));
    silent();
    // One easy answer is no proof.
    expect(await leave("shallow", " sea")).toBeGreaterThan(190 * outputPrice);
    for (let answers = 0; answers < 2; answers++) {
      whole(1);
      await caller.stream(path, ask("shallow"));
    }
    // Far below the long silence that is thought all the same; it would be 60 tokens.
    silent(300);
    expect(await leave("shallow", " sea")).toBeLessThan(10 * outputPrice);
    play(protocol.begin, 2_500, protocol.say(" sea"));
    expect(await leave("shallow", " sea")).toBeGreaterThan(490 * outputPrice);

    whole(2_000);
    await caller.stream(path, ask("shallow"));
    silent();
    expect(await leave("shallow", " sea")).toBeGreaterThan(190 * outputPrice);
  });

  test("pays for a long pause within its text", async () => {
    play(protocol.begin, protocol.say("Well,"), 2_500, protocol.say(" sea"));
    expect(await leave("silent", " sea")).toBeGreaterThan(480 * outputPrice);
  });
});
