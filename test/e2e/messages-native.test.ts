import Anthropic from "@anthropic-ai/sdk";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { anthropicAnswers, startAnthropic } from "../support/upstreams/anthropic.ts";
import type { Asked } from "./caller.ts";
import { chat, developerPrompt } from "./catalog.ts";
import { claudeKey, withClaude } from "./claude-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

// Callers of Messages at an upstream that speaks them.

const perToken = (micros: number) => Math.round(micros * 1_000_000);
const pricing = {
  inputUsdMicrosPerMillionTokens: perToken(4),
  cachedInputUsdMicrosPerMillionTokens: perToken(0.2),
  cacheWriteUsdMicrosPerMillionTokens: perToken(5),
  outputUsdMicrosPerMillionTokens: perToken(20),
};
const priced = { ...pricing, cacheWriteLongUsdMicrosPerMillionTokens: perToken(8) };
const fields = {
  ...{ upstream: "claude", upstreamModel: "up-model", pricing: priced, maxInputTokens: 200_000 },
  ...{ maxOutputTokens: 8_000, inputModalities: ["text", "image", "pdf"] },
  tools: ["function", "bash"],
};

ownWorldOnly();
const double = await startAnthropic({ key: claudeKey });
const world = await startWorld(
  withClaude(double, [
    chat("claude", fields),
    chat("no-hour", { ...fields, pricing }),
    chat("unforced", { ...fields, forcedTools: false }),
    chat("mixed", { ...fields, upstream: "main", fallbackUpstreams: ["claude"] }),
  ]),
);
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
});
const caller = await world.caller();
const other = await world.caller();
beforeEach(() => {
  double.usual = { content: [{ type: "text", text: "Hello." }] };
  double.always("messages", undefined);
});

const hi = { role: "user", content: "Hi" };
const tools = [{ name: "look", input_schema: { type: "object" }, defer_loading: false }];
const ask = { model: "claude", max_tokens: 4_000, messages: [hi] };
const thinking = { type: "thinking", thinking: "", signature: "c2lnbmF0dXJl+/=" };
const use = { type: "tool_use", id: "toolu_1", name: "look", input: { at: 1 } };
const result = { type: "tool_result", tool_use_id: "toolu_1", content: "A lamp." };
const last = () => double.seen("messages").at(-1) ?? expect.unreachable();
const errorOf = ({ status, json }: Asked) =>
  `${status} ${json?.error?.type} ${json?.error?.code} ${json?.error?.message}`;

describe("a request", () => {
  test("goes up with its own fields, the developer prompt, and a user that nobody knows", async () => {
    const control = { type: "ephemeral" };
    const attribution = { type: "text", text: "x-anthropic-billing-header: cc_version=2.1.332" };
    const system = [attribution, { type: "text", text: "Be kind.", cache_control: control }];
    const body = {
      ...{ ...ask, system, tools: [{ ...tools[0], cache_control: control }] },
      thinking: { type: "adaptive", display: "omitted" },
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      metadata: { user_id: "device-of-the-caller" },
      ...{ output_config: { effort: "medium" }, temperature: 1, speed: "fast" },
    };
    const { status, json, headers } = await caller.post("/messages", body);
    expect([status, json.content[0].text]).toEqual([200, "Hello."]);
    const { body: sent, headers: told } = last();
    expect(sent.system).toEqual([
      ...[attribution, { type: "text", text: developerPrompt }, system[1]],
    ]);
    const { tools: t, thinking: asks, context_management: edits, output_config: config } = sent;
    expect({ tools: t, thinking: asks, context_management: edits, output_config: config }).toEqual({
      ...{ tools: body.tools, thinking: body.thinking },
      ...{ context_management: body.context_management, output_config: body.output_config },
    });
    expect(sent.metadata.user_id).toMatch(/^[0-9a-f]{64}$/);
    expect(`${told["anthropic-beta"]}`.split(",")).toEqual([
      ...["advanced-tool-use-2025-11-20", "context-management-2025-06-27"],
    ]);
    expect(headers.get("x-genmesh-ignored-parameters")).toBe("metadata, temperature, speed");
    expect(JSON.stringify(json)).not.toMatch(/OPERATOR-WORDS|up-model/);
  });

  test("goes up with the caller's betas that the upstream may be asked for", async () => {
    const named = ["interleaved-thinking-2025-05-14", "context-management-2025-06-27"];
    const beta = [...named, "context-1m-2025-08-07"].join(", ");
    for (const [model, left] of [
      ["claude", ["anthropic-beta.context-1m-2025-08-07"]],
      ["chat-1", [...named, "context-1m-2025-08-07"].map((one) => `anthropic-beta.${one}`)],
    ] as const) {
      const { status, headers } = await caller.post(
        "/messages",
        { ...ask, model },
        { headers: { "anthropic-beta": beta } },
      );
      expect(status).toBe(200);
      expect(headers.get("x-genmesh-ignored-parameters")).toBe(left.join(", "));
    }
    // One without its field stays away.
    expect(last().headers["anthropic-beta"]).toBe(named[0]);
  });

  test("the model's turns stay as they were written, down to the numbers", async () => {
    const turn = `{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"look","input":{"at":1.0,"n":1e3}}]}`;
    const text =
      `{"model":"claude","max_tokens":100,"tools":${JSON.stringify(tools)},` +
      `"messages":[${JSON.stringify(hi)}, ${turn} ,${JSON.stringify({ role: "user", content: [result] })}]}`;
    expect((await caller.post("/messages", text)).status).toBe(200);
    expect(last().raw.toString()).toContain(turn);
  });

  test.each([
    [
      "unforced",
      { tools, tool_choice: { type: "any" } },
      /^400 invalid_request_error unsupported_parameter/,
    ],
    ["no-hour", { cache_control: { type: "ephemeral", ttl: "1h" } }, /^400 .*no cache of an hour/],
    ["claude", { container: "c" }, /^400 invalid_request_error unsupported_parameter/],
    ["claude", { messages: [{ role: "user", content: [{ type: "novel" }] }] }, /^400 .*novel/],
  ])("that cannot be is refused before it is sent: %s %o", async (model, more, error) => {
    const before = double.seen("messages").length;
    const asked = await caller.post("/messages", { ...ask, model, ...more });
    expect(errorOf(asked)).toMatch(error);
    expect(double.seen("messages")).toHaveLength(before);
  });

  test("goes to the upstream that speaks Messages, where others are there too", async () => {
    const before = double.seen("messages").length;
    const seen = world.play();
    expect((await caller.post("/messages", { ...ask, model: "mixed" })).status).toBe(200);
    expect([double.seen("messages").length - before, seen.length]).toEqual([1, 0]);
  });
});

describe("thinking", () => {
  const begin = { ...ask, tools, thinking: { type: "adaptive" } };
  const next = (content: object[]) => ({
    ...begin,
    messages: [hi, { role: "assistant", content }, { role: "user", content: [result] }],
  });

  test("goes back byte for byte, to the account that it was made for", async () => {
    double.answers.push({ content: [thinking, use] });
    const { json } = await caller.post("/messages", begin);
    expect(json.content).toEqual([thinking, use]);
    expect((await caller.post("/messages", next(json.content))).status).toBe(200);
    expect(last().body.messages[1].content).toEqual([thinking, use]);
    expect(last().body.thinking.block_binding).toEqual({ prefix_mismatch_behavior: "drop_block" });
    const before = double.seen("messages").length;
    const foreign = await other.post("/messages", next(json.content));
    expect(errorOf(foreign)).toContain(
      "messages.1.content.0: Invalid `signature` in `thinking` block",
    );
    expect(double.seen("messages")).toHaveLength(before);
  });

  test("that nobody made here, or another protocol's, is left out", async () => {
    for (const signature of ["bWFkZSB1cA==", "gmr1.e30", ""]) {
      const { status } = await caller.post("/messages", next([{ ...thinking, signature }, use]));
      expect(status).toBe(200);
      expect(last().body.messages[1].content).toEqual([use]);
    }
  });
});

test("a bound of 0 fills the cache, and costs its input", async () => {
  const usage = {
    ...{ input_tokens: 100, cache_creation_input_tokens: 4_900, cache_read_input_tokens: 0 },
    output_tokens: 0,
  };
  const body = { ...ask, max_tokens: 0, system: "word ".repeat(1_200) };
  for (const [stream, firstUsage, cost] of [
    [false, usage, 24_900],
    [true, usage, 24_900],
    // Some streams count a token before there is any.
    [true, { ...usage, output_tokens: 1 }, 24_920],
  ] as const) {
    double.usual = { content: [], stop_reason: "max_tokens", usage, firstUsage };
    const who = await world.caller();
    expect((await who.post("/messages", { ...body, stream })).status).toBe(200);
    expect(last().body.max_tokens).toBe(0);
    expect((await who.settled()).monthSpend).toBe(cost);
  }
});

test("what was read and written has its own price, whole and streamed", async () => {
  const usage = {
    ...{ input_tokens: 100, cache_read_input_tokens: 20_000, cache_creation_input_tokens: 5_000 },
    cache_creation: { ephemeral_5m_input_tokens: 3_000, ephemeral_1h_input_tokens: 2_000 },
    output_tokens: 300,
  };
  const system = [
    { type: "text", text: "word ".repeat(20_000), cache_control: { type: "ephemeral", ttl: "1h" } },
  ];
  for (const form of ["post", "stream"] as const) {
    const who = await world.caller();
    double.usual = { content: [{ type: "text", text: "Hello." }], usage };
    const answer = await who[form]("/messages", { ...ask, system });
    const shown = Array.isArray(answer) ? answer.at(-2)?.json.usage : answer.json.usage;
    // prices.md, example 16.
    expect(shown).toMatchObject({ ...usage, costUsdMicros: 41_400 });
    expect((await who.settled()).monthSpend).toBe(41_400);
  }
});

describe("a count", () => {
  const path = "/messages/count_tokens";
  const body = {
    model: "claude",
    messages: [hi],
    tools,
    temperature: 1,
    metadata: { user_id: "u" },
  };
  const thinks = { thinking: { type: "enabled", budget_tokens: 2_000 } };
  const asked = () => double.seen("count").at(-1) ?? expect.unreachable();
  const headers = { "anthropic-beta": "token-counting-2024-11-01, novel-2026-11-01" };

  test("is the upstream's, of the request's own fields and betas, and free", async () => {
    const poor = await world.caller({ usdMicros: 0n });
    const edits = { context_management: { edits: [] } };
    const { status, json } = await poor.post(path, { ...body, ...thinks, ...edits }, { headers });
    expect([status, json]).toEqual([200, { input_tokens: 4_242 }]);
    const { body: sent, headers: told } = asked();
    expect(sent).toEqual({
      ...{ model: "up-model", messages: [hi], tools, ...thinks },
      system: [{ type: "text", text: developerPrompt }],
    });
    expect(`${told["anthropic-beta"]}`.split(",")).toEqual([
      ...["advanced-tool-use-2025-11-20", "token-counting-2024-11-01"],
    ]);
    expect(await poor.balance()).toMatchObject({ reserved: 0, monthSpend: 0 });
  });

  test("is genmesh's own where the upstream has none", async () => {
    const counts: number[] = [];
    const odd = { kind: "json", body: { input_tokens: "many" } } as const;
    for (const answer of [anthropicAnswers.down, anthropicAnswers.rate, odd]) {
      double.next("count", answer);
      const { status, json } = await caller.post(path, body);
      expect(status).toBe(200);
      counts.push(json.input_tokens);
    }
    expect(new Set(counts).size).toBe(1);
    expect(counts[0]).toBeGreaterThan(0);
    expect(counts[0]).not.toBe(4_242);
  });

  test("is rounded up where it is genmesh's own, as other vocabularies have a token for each digit", async () => {
    double.next("count", anthropicAnswers.down);
    const digits = { ...body, messages: [{ role: "user", content: "7".repeat(900) }] };
    const { json } = await caller.post(path, digits);
    expect(json.input_tokens).toBeGreaterThanOrEqual(900);
  });
});

describe("Anthropic's own client", () => {
  const client = () =>
    new Anthropic({
      ...{ apiKey: caller.key, maxRetries: 0 },
      baseURL: caller.baseUrl.replace(/\/v1$/, ""),
    });

  test("loops over tools, streamed, as at Anthropic itself", async () => {
    const own = { ...thinking, thinking: "I look.", signature: "b2YgdGhlIFNESw==" };
    double.answers.push({ content: [own, { type: "text", text: "Let me look." }, use] });
    const asked = { ...begin(), messages: [hi as Anthropic.MessageParam] };
    const stream = client().messages.stream(asked);
    const texts: string[] = [];
    stream.on("text", (text) => texts.push(text));
    const message = await stream.finalMessage();
    expect(texts.join("")).toBe("Let me look.");
    expect(message.content).toMatchObject([own, { text: "Let me look." }, use]);
    const { content } = message;
    const answered = { role: "user", content: [result] } as Anthropic.MessageParam;
    const messages = [...asked.messages, { role: "assistant", content } as const, answered];
    const end = await client().messages.create({ ...asked, messages });
    expect(end).toMatchObject({ content: [{ text: "Hello." }], stop_reason: "end_turn" });
    expect(last().body.messages[1].content[0]).toEqual(own);
  });

  test("has its own classes of errors", async () => {
    double.next("messages", anthropicAnswers.tooLong);
    await expect(client().messages.create(begin())).rejects.toThrow(/prompt is too long/);
    double.next("messages", anthropicAnswers.overloaded);
    await expect(client().messages.create(begin())).rejects.toMatchObject({ status: 529 });
  });

  const begin = (): Anthropic.MessageCreateParamsNonStreaming => ({
    ...{ model: "claude", max_tokens: 1_000, messages: [{ role: "user", content: "Hi" }] },
    tools: [{ name: "look", input_schema: { type: "object" } }],
  });
});
