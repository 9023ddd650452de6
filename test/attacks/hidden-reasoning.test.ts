import type { ServerResponse } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { usageWaitMs } from "../../services/text/base/limits.ts";
import type { Caller } from "../e2e/caller.ts";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { promptly } from "../support/promptly.ts";

ownWorldOnly();

/** Models with hidden reasoning. Their catalog has the number of tokens that one second of it counts as. */
const thinking = {
  reasoningEfforts: ["none", "low", "high"],
  maxOutputTokens: 20_000,
  hiddenTokensPerSecond: 200,
};
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("thinker", thinking),
      chat("unsaid", { ...thinking, hiddenTokensPerSecond: undefined }),
      chat("keen", { maxInputTokens: 100_000, imageTokensAtLeast: 3_000 }),
      chat("sighted", { maxInputTokens: 100_000 }),
      chat("thinker-legacy", { ...thinking, upstream: "legacy" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

const opening = 100_000_000n;
const input = "Hi";
const messages = [{ role: "user", content: input }];
const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
const usage = { input_tokens: 500, output_tokens: 5_000, total_tokens: 5_500 };
const usageCost = 500 + 5_000 * outputPrice;
/** The price of `ms` ms of hidden reasoning, at 200 tokens a second. */
const thoughtCost = (ms: number) => 0.2 * ms * outputPrice;
/** A PNG of one pixel. */
const dot =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const spent = async (caller: Caller) => Number((await caller.settled()).monthSpend);

function event(type: string, fields: object): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
}
function say(text: string): string {
  const at = { item_id: "msg_1", output_index: 1, content_index: 0 };
  return event("response.output_text.delta", { ...at, delta: text });
}
const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
const created = event("response.created", { response: { ...response, status: "in_progress" } });
const completed = event("response.completed", {
  response: { ...response, status: "completed", usage },
});
const sealed = (characters: number) => ({
  ...{ id: "rs_1", type: "reasoning", summary: [] },
  encrypted_content: "x".repeat(characters),
});
const thought = (item: object) => event("response.output_item.done", { output_index: 0, item });
const chunk = (delta: object) =>
  `data: ${JSON.stringify({
    ...{ id: "c", object: "chat.completion.chunk", created: 1, model: "up" },
    choices: [{ index: 0, delta, finish_reason: null }],
  })}\n\n`;

/** Streams parts, and stays open after them. A number is a pause in ms. */
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

describe("a stop sequence that only we look for", () => {
  const asked = { model: "thinker", messages, stop: ["END"] };

  test("hides what follows it, and the usage that upstream reports then is charged", async () => {
    for (const isWithUsage of [true, false]) {
      const caller = await world.caller({ usdMicros: opening });
      world.play(streaming(created, say("Short. EN"), say("D and more"), 300, say("!"), completed));
      const events = await caller.stream("/chat/completions", {
        ...asked,
        ...(isWithUsage ? { stream_options: { include_usage: true } } : {}),
      });
      const parts = events.map(({ json }) => json).filter(Boolean);
      const texts = parts.flatMap(({ choices }) => choices).map(({ delta }) => delta.content ?? "");
      expect(texts.join("")).toBe("Short. ");
      const finishes = parts.flatMap(({ choices }) => choices).map((one) => one.finish_reason);
      expect(finishes.filter(Boolean)).toEqual(["stop"]);
      if (isWithUsage) expect(parts.at(-1).usage.completion_tokens).toBe(5_000);
      expect(events.at(-1)?.data).toBe("[DONE]");
      expect(await spent(caller)).toBe(usageCost);
    }
  });

  test("is found in an answer that comes with its last event alone, whose usage is charged", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const content = [{ type: "output_text", text: "Short. END" }];
    const whole = { ...response, output: [{ type: "message", role: "assistant", content }] };
    const last = { response: { ...whole, status: "completed", usage } };
    world.play(streaming(event("response.completed", last)));
    await caller.stream("/chat/completions", asked);
    expect(await spent(caller)).toBe(usageCost);
  });

  test("what upstream says behind it, and had thought before, is counted where it sends no usage", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const seen = world.play(
      streaming(created, thought(sealed(16_000)), say("END"), say(" word".repeat(100))),
    );
    const events = await caller.stream("/chat/completions", asked);
    expect(events.at(-1)?.data).toBe("[DONE]");
    await seen[0]?.over;
    expect(seen[0]?.aborted).toBe(true);
    expect(await spent(caller)).toBeGreaterThanOrEqual(3_100 * outputPrice);
    expect(await spent(caller)).toBeLessThan(4_000 * outputPrice);
  });
});

describe("leaving before upstream reports usage", () => {
  const ways = [
    { name: "a response", path: "/responses", body: { model: "thinker", input }, begin: created },
    {
      ...{ name: "chat, translated", path: "/chat/completions" },
      ...{ body: { model: "thinker", messages }, begin: created },
    },
    {
      ...{ name: "chat, native", path: "/chat/completions" },
      ...{ body: { model: "thinker-legacy", messages }, begin: chunk({ role: "assistant" }) },
    },
  ];

  test.for(ways)("pays for the time before the first word: $name", async (way) => {
    const caller = await world.caller({ usdMicros: opening });
    const isNative = way.body.model === "thinker-legacy";
    const words = isNative ? chunk({ content: " word" }) : say(" word");
    const seen = world.play(streaming(way.begin, 1_000, words, 600, words));
    const askedAtMs = performance.now();
    const stream = await caller.open(way.path, way.body);
    await stream.until(({ data }) => data.includes(" word"));
    const firstMs = performance.now() - askedAtMs;
    await stream.until(({ data }) => data.includes(" word"));
    stream.leave();
    await seen[0]?.over;
    // One second, at 200 tokens. The time between two words is not hidden. It would cost 120.
    expect(await spent(caller)).toBeGreaterThan(190 * outputPrice);
    expect(await spent(caller)).toBeLessThan(60 * outputPrice + thoughtCost(firstMs));
  });

  test.for(ways)(
    "by the catalog's figure, also where it asked for no reasoning: $name",
    async (way) => {
      const isNative = way.body.model === "thinker-legacy";
      const words = isNative ? chunk({ content: " word" }) : say(" word");
      const own =
        way.path === "/responses"
          ? { reasoning: { effort: "none" } }
          : { reasoning_effort: "none" };
      const caller = await world.caller({ usdMicros: opening });
      world.play(streaming(way.begin, 1_000, words));
      const stream = await caller.open(way.path, { ...way.body, ...own });
      await stream.until(({ data }) => data.includes(" word"));
      stream.leave();
      expect(await spent(caller)).toBeGreaterThan(190 * outputPrice);
    },
  );

  test("pays for what it was sent alone where the catalog has no figure, however long the model thought", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const item = { id: "rs_1", type: "reasoning", summary: [] };
    const added = event("response.output_item.added", { output_index: 0, item });
    world.play(streaming(created, added, 2_500, say(" word"), 60_000));
    const stream = await caller.open("/responses", { model: "unsaid", input });
    await stream.until(({ data }) => data.includes(" word"));
    stream.leave();
    expect(await spent(caller)).toBeGreaterThan(0);
    expect(await spent(caller)).toBeLessThan(40 * outputPrice);
  });

  test("pays for reasoning that came at once and shows nothing", async () => {
    for (const way of ways.slice(0, 2)) {
      const caller = await world.caller({ usdMicros: opening });
      const silent = { id: "rs_1", type: "reasoning", summary: [] };
      const seen = world.play(streaming(created, thought(silent), thought(silent), say(" word")));
      const stream = await caller.open(way.path, way.body);
      await stream.until(({ data }) => data.includes(" word"));
      stream.leave();
      await seen[0]?.over;
      expect(await spent(caller)).toBeGreaterThanOrEqual(2 * 64 * outputPrice);
    }
  });

  test("pays for sealed reasoning", async () => {
    for (const way of ways.slice(0, 2)) {
      const caller = await world.caller({ usdMicros: opening });
      world.play(streaming(created, thought(sealed(16_000)), say(" word")));
      const stream = await caller.open(way.path, way.body);
      await stream.until(({ data }) => data.includes(" word"));
      stream.leave();
      expect(await spent(caller)).toBeGreaterThan(3_000 * outputPrice);
      expect(await spent(caller)).toBeLessThan(3_100 * outputPrice);
    }
    const caller = await world.caller({ usdMicros: opening });
    const details = [{ type: "reasoning.encrypted", data: "x".repeat(16_000) }];
    world.play(streaming(chunk({ reasoning_details: details }), chunk({ content: " word" })));
    const stream = await caller.open("/chat/completions", { model: "thinker-legacy", messages });
    await stream.until(({ data }) => data.includes(" word"));
    stream.leave();
    expect(await spent(caller)).toBeGreaterThan(3_000 * outputPrice);
    expect(await spent(caller)).toBeLessThan(3_100 * outputPrice);
  });

  test("reasoning that is shown pays once, though it is sealed as well", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const at = { item_id: "rs_1", output_index: 0, content_index: 0 };
    const delta = " word".repeat(1_000);
    const shown = event("response.reasoning_text.delta", { ...at, delta });
    world.play(streaming(created, shown, thought(sealed(4_000)), say(" sea")));
    const stream = await caller.open("/responses", { model: "plain", input });
    await stream.until(({ data }) => data.includes(" sea"));
    stream.leave();
    expect(await spent(caller)).toBeLessThan(1_050 * outputPrice);
  });

  test("pays for the time behind a reasoning item, and upstream is not read on", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const item = { id: "rs_1", type: "reasoning", summary: [] };
    const added = event("response.output_item.added", { output_index: 0, item });
    const seen = world.play(streaming(created, added, 60_000));
    const askedAtMs = performance.now();
    const stream = await caller.open("/responses", { model: "thinker", input });
    await stream.until(({ name }) => name === "response.output_item.added");
    await delay(1_000);
    await promptly(usageWaitMs, () => {
      stream.leave();
      return seen[0]?.over;
    });
    const tookMs = performance.now() - askedAtMs;
    expect(await spent(caller)).toBeGreaterThan(190 * outputPrice);
    expect(await spent(caller)).toBeLessThan(60 * outputPrice + thoughtCost(tookMs));
  });

  test.for([
    ["/responses", { model: "thinker", input }],
    ["/responses/compact", { model: "thinker", input }],
    ["/chat/completions", { model: "thinker-legacy", messages }],
  ] as const)("a JSON request pays for the time: %s", async ([path, body]) => {
    const caller = await world.caller({ usdMicros: opening });
    const asked = Promise.withResolvers<void>();
    const seen = world.play({ kind: "custom", handle: () => asked.resolve() });
    const leaving = new AbortController();
    const askedAtMs = performance.now();
    const answer = caller.post(path, body, { signal: leaving.signal });
    answer.catch(() => {});
    await asked.promise;
    await delay(1_000);
    leaving.abort();
    await seen[0]?.over;
    const tookMs = performance.now() - askedAtMs;
    expect(await spent(caller)).toBeGreaterThan(190 * outputPrice);
    expect(await spent(caller)).toBeLessThan(60 * outputPrice + thoughtCost(tookMs));
  });
});

describe("usage in an answer that is none is charged, and the caller has the error", () => {
  const chatUsage = { prompt_tokens: 500, completion_tokens: 5_000 };
  const error = { message: "no", code: "server_error" };
  const ofResponses = [
    { ...response, status: "in_progress", usage },
    { ...response, status: "queued", usage },
    { id: "resp_1", status: "completed", usage },
    { error, usage },
  ];
  const ofChat = [
    { id: "c", choices: [], usage: chatUsage },
    { error, usage: chatUsage },
  ];
  const chatPath = "/chat/completions";
  const bodies: [path: string, asked: object, body: object][] = [
    ...ofResponses.flatMap((body): [string, object, object][] => [
      ["/responses", { model: "thinker", input }, body],
      [chatPath, { model: "thinker", messages }, body],
    ]),
    ...ofChat.map((body): [string, object, object] => [
      chatPath,
      { model: "thinker-legacy", messages },
      body,
    ]),
    ["/responses/compact", { model: "thinker", input }, { id: "r", usage }],
  ];

  test.for(bodies)("%s %j: %j", async ([path, asked, body]) => {
    for (const stream of path === "/responses/compact" ? [false] : [false, true]) {
      const caller = await world.caller({ usdMicros: opening });
      world.play({ kind: "json", body });
      const answer = await caller.post(path, { ...asked, ...(stream ? { stream } : {}) });
      // A stream may have begun, and then ends with the error.
      const told = answer.status === 502 || /event: response.failed|"error"/.test(answer.text);
      expect(told).toBe(true);
      expect(await spent(caller)).toBe(usageCost);
    }
  });

  test("as the first event of a stream, too", async () => {
    const caller = await world.caller({ usdMicros: opening });
    world.play({ kind: "events", events: [{ error, usage: chatUsage }] });
    const answer = await caller.post(chatPath, {
      ...{ model: "thinker-legacy", messages, stream: true },
    });
    expect(answer.status).toBe(502);
    expect(await spent(caller)).toBe(usageCost);
  });
});

test.for([
  ["sighted", 1_500],
  ["keen", 2_833],
] as const)("usage of small images is believed and covered: %s, %d each", async ([model, each]) => {
  const caller = await world.caller({ usdMicros: opening });
  const tokens = 20 * each;
  const reported = { input_tokens: tokens, output_tokens: 1, total_tokens: tokens + 1 };
  world.play({ kind: "ok", usage: reported });
  const parts = Array.from({ length: 20 }, () => ({ type: "input_image", image_url: dot }));
  const asked = { model, input: [{ role: "user", content: parts }], max_output_tokens: 16 };
  expect((await caller.post("/responses", asked)).status).toBe(200);
  expect(await spent(caller)).toBe(tokens + outputPrice);
});
