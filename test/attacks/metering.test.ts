import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createTokenCounter } from "../../services/text/tokens/count.ts";
import type { Caller } from "../e2e/caller.ts";
import { chat, developerPrompt } from "../e2e/catalog.ts";
import type { SseEvent } from "../e2e/sse.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { until } from "../support/until.ts";

const world = await startWorld({
  catalog: (usual) => {
    const { main, legacy } = usual.upstreams;
    return {
      ...usual,
      upstreams: {
        ...usual.upstreams,
        boundless: { ...main, outputLimit: "none" },
        "boundless-legacy": { ...legacy, outputLimit: "none" },
        "newer-legacy": { ...legacy, outputLimit: "max_completion_tokens" },
      },
      models: [
        ...usual.models,
        chat("boundless", { upstream: "boundless" }),
        chat("boundless-legacy", { upstream: "boundless-legacy" }),
        chat("newer-legacy", { upstream: "newer-legacy" }),
      ],
    };
  },
});
const counter = createTokenCounter(createWorkshop());
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const opening = 10_000_000;
const messages = [{ role: "user", content: "Hi" }];
/** One token each. A request costs four micros for each, and its input. */
const word = " word";
const many = Array<string>(4_000).fill(word);
const limitNames = ["max_tokens", "max_completion_tokens", "max_output_tokens"];

/** Each way to ask for text: its path, its body, and its upstream's name of the bound. */
const ways: [name: string, path: string, body: object, upstreamName: string][] = [
  ["a response", "/responses", { model: "scripted", input: "Hi" }, "max_output_tokens"],
  ["chat, translated", "/chat/completions", { model: "scripted", messages }, "max_output_tokens"],
  ["chat, native", "/chat/completions", { model: "legacy", messages }, "max_tokens"],
  [
    "chat, at a newer server",
    "/chat/completions",
    { model: "newer-legacy", messages },
    "max_completion_tokens",
  ],
  ["chat, at a peer", "/chat/completions", { model: "peer", messages }, "max_tokens"],
];
const boundless: [name: string, path: string, body: object][] = [
  ["a response", "/responses", { model: "boundless", input: "Hi" }],
  ["chat, translated", "/chat/completions", { model: "boundless", messages }],
  ["chat, native", "/chat/completions", { model: "boundless-legacy", messages }],
];

/** The whole text in a stream's events. */
function textOf(events: readonly SseEvent[]): string {
  return events
    .map(({ json, name }) => {
      if (name?.endsWith(".delta")) return json.delta;
      const delta = json?.choices?.[0]?.delta;
      return delta ? textIn(delta) : "";
    })
    .join("");
}
function textIn(value: unknown): string {
  if (typeof value === "string") return value === "assistant" ? "" : value;
  if (typeof value !== "object" || value === null) return "";
  const fields = Object.entries(value).filter(([name]) => name !== "type" && name !== "id");
  return fields.map(([, field]) => textIn(field)).join("");
}
/** The reason of its end and its reported usage, in any format. */
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
function endOf(answer: any) {
  const choice = answer.choices?.[0];
  return {
    reason: choice ? choice.finish_reason : answer.incomplete_details?.reason,
    output: answer.usage?.completion_tokens ?? answer.usage?.output_tokens,
    input: answer.usage?.prompt_tokens ?? answer.usage?.input_tokens,
    estimated: answer.usage?.estimated,
    text: choice ? textIn(choice.message) : textIn(answer.output?.[0]?.content?.[0]?.text ?? ""),
  };
}
function endOfStream(events: readonly SseEvent[]) {
  const parts = events.map(({ json }) => json).filter(Boolean);
  const response = parts.at(-1)?.response;
  if (response) return { ...endOf(response), text: textOf(events) };
  const finish = parts.findLast((chunk) => chunk.choices?.[0]?.finish_reason);
  const usage = parts.findLast((chunk) => chunk.usage)?.usage;
  return { ...endOf({ choices: finish?.choices, usage }), text: textOf(events) };
}
const reached = /^(?:length|max_output_tokens)$/;
const asChunk = { stream_options: { include_usage: true } };
const tokensOf = (text: string) => counter.count([text]);
const costOf = async (payer: Caller) => opening - (await payer.settled()).available;

describe.for(ways)("an upstream that does not keep to its bound: %s", ([, path, body, known]) => {
  test.for(["max_output_tokens", "max_tokens", "max_completion_tokens"])(
    "is told it in the name that it knows, whichever the caller wrote: %s",
    async (name) => {
      if (path === "/responses" && name !== "max_output_tokens") return;
      const payer = await world.caller();
      const seen = world.play();
      await payer.post(path, { ...body, [name]: 7 });
      const told = limitNames.filter((one) => Object.hasOwn(seen[0]?.body, one));
      expect(told).toEqual([known]);
      expect(seen[0]?.body[known]).toBe(7);
    },
  );

  test("its stream is cut, ends as incomplete, and costs the bound", async () => {
    const payer = await world.caller();
    const seen = world.play({ kind: "ok", deltas: many, usage: null });
    const asked = { ...body, ...asChunk, max_output_tokens: 10 };
    const stream = await payer.open(path, asked);
    const events = await stream.rest();
    const end = endOfStream(events);
    expect(end.reason).toMatch(reached);
    expect(end).toMatchObject({ output: 10, estimated: true });
    expect(events.at(-1)?.data).toBe("[DONE]");
    const tokens = await tokensOf(end.text);
    expect(tokens).toBeGreaterThanOrEqual(10);
    expect(tokens).toBeLessThanOrEqual(2 * 10 + 16 + 1);
    expect(await costOf(payer)).toBe(end.input + 4 * 10);
    await seen[0]?.over;
  });

  test("its whole answer is cut, too, also where a stream was asked for", async () => {
    for (const isStream of [false, true]) {
      const payer = await world.caller();
      const text = many.join("");
      const native = { id: "c", choices: [{ index: 0, message: { content: text } }] };
      const response = {
        id: "r",
        status: "completed",
        output: [{ type: "message", role: "assistant", content: [{ type: "output_text", text }] }],
      };
      const isNative = known !== "max_output_tokens";
      world.play({ kind: "json", body: isNative ? native : response });
      const asked = { ...body, ...asChunk, max_output_tokens: 10 };
      const end = isStream
        ? endOfStream(await payer.stream(path, asked))
        : endOf((await payer.post(path, { ...body, max_output_tokens: 10 })).json);
      expect(end.reason).toMatch(reached);
      expect(end).toMatchObject({ output: 10, estimated: true });
      expect(await tokensOf(end.text)).toBe(10);
      expect(await costOf(payer)).toBe(end.input + 4 * 10);
    }
  });

  test("a stream of English is cut a quarter above its bound", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", deltas: many, usage: null });
    const asked = { ...body, ...asChunk, max_output_tokens: 400 };
    const end = endOfStream(await payer.stream(path, asked));
    expect(end).toMatchObject({ output: 400, estimated: true });
    expect(await tokensOf(end.text)).toBeLessThanOrEqual(400 * 1.25 + 16 + 1);
    expect(await costOf(payer)).toBe(end.input + 4 * 400);
  });

  test("one whose vocabulary has fewer tokens for a script is not cut", async () => {
    // 41 tokens for Gemma, 99 by genmesh's count.
    const words = "ᏂᎦᏓ ᎠᏂᏴᏫ ᏂᎨᎫᏓᎸᎾ ᎠᎴ ᎤᏂᏠᏱ ᎤᎾᏕᎿ ᏚᏳᎧᏛ ᎨᏒᎢ. ".split(/(?= )/);
    const deltas = Array.from({ length: 10 }, () => words).flat();
    world.play({ kind: "ok", deltas, usage: { input_tokens: 10, output_tokens: 410 } });
    const asked = { ...body, ...asChunk, max_output_tokens: 410 };
    const end = endOfStream(await (await world.caller()).stream(path, asked));
    expect(end).toMatchObject({ text: deltas.join(""), output: 410, input: 10 });
  });

  test("one that counts fewer tokens than we do is not cut", async () => {
    const payer = await world.caller();
    // For its own tokenizer these are ten.
    const deltas = many.slice(0, 20);
    const usage = { input_tokens: 10, output_tokens: 10, total_tokens: 20 };
    world.play({ kind: "ok", deltas, usage });
    const end = endOfStream(
      await payer.stream(path, { ...body, ...asChunk, max_output_tokens: 10 }),
    );
    expect(end.reason ?? "").not.toMatch(reached);
    expect(end).toMatchObject({ text: deltas.join(""), output: 10, input: 10 });
    expect(end.estimated).toBeUndefined();
    expect(await costOf(payer)).toBe(10 + 4 * 10);
  });
});

describe.for(boundless)("an upstream that knows no bound: %s", ([, path, body]) => {
  test("is told none, and its answer has what was asked for, to the token", async () => {
    for (const isStream of [false, true]) {
      const payer = await world.caller();
      const seen = world.play({ kind: "ok", deltas: many, usage: null });
      const asked = { ...body, max_output_tokens: 50 };
      const end = isStream
        ? endOfStream(await payer.stream(path, { ...asked, ...asChunk }))
        : endOf((await payer.post(path, asked)).json);
      expect(limitNames.filter((one) => Object.hasOwn(seen[0]?.body, one))).toEqual([]);
      expect(end.reason).toMatch(reached);
      expect(end).toMatchObject({ output: 50, estimated: true });
      const tokens = await tokensOf(end.text);
      // A stream is cut between two deltas.
      expect(tokens).toBeGreaterThanOrEqual(50);
      expect(tokens).toBeLessThanOrEqual(isStream ? 51 : 50);
      expect(await costOf(payer)).toBe(end.input + 4 * 50);
    }
  });
});

test("a stream of single letters is not cut below its bound", async () => {
  const payer = await world.caller();
  const text = "An unremarkable international conversation about photosynthesis continues. ".repeat(
    40,
  );
  world.play({ kind: "ok", deltas: [...text], usage: null });
  const body = { model: "boundless", input: "Hi", max_output_tokens: 100 };
  const end = endOfStream(await payer.stream("/responses", body));
  expect(end).toMatchObject({ reason: "max_output_tokens", output: 100, estimated: true });
  expect(await tokensOf(end.text)).toBeGreaterThanOrEqual(100);
  expect(await tokensOf(end.text)).toBeLessThanOrEqual(103);
});

describe("output counts, in a field of any name", () => {
  const native = { model: "legacy", messages, max_output_tokens: 10 };
  const said = many.join("").slice(0, 5_000);
  const deltaOf: [string, (text: string) => object][] = [
    ["content", (content) => ({ content })],
    ["refusal", (refusal) => ({ refusal })],
    ["reasoning_content", (reasoning_content) => ({ reasoning_content })],
    ["function_call", (args) => ({ function_call: { arguments: args } })],
    ["tool_calls", (args) => ({ tool_calls: [{ index: 0, function: { arguments: args } }] })],
    ["reasoning_details", (text) => ({ reasoning_details: [{ type: "reasoning.text", text }] })],
    ["thinking", (thinking) => ({ thinking })],
    ["a name of its own", (text) => ({ anything: [{ deep: { down: text } }] })],
  ];
  const chunk = (delta: object) => ({
    id: "c",
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, finish_reason: null }],
  });

  test.for(deltaOf)("in a chat stream: %s", async ([, make]) => {
    for (const pieces of [many.slice(0, 1_000), [said]]) {
      const payer = await world.caller();
      world.play({ kind: "events", events: pieces.map((text) => chunk(make(text))) });
      const end = endOfStream(await payer.stream("/chat/completions", { ...native, ...asChunk }));
      expect(end).toMatchObject({ reason: "length", output: 10, estimated: true });
      expect(await tokensOf(end.text)).toBeLessThanOrEqual(37);
      expect(await costOf(payer)).toBe(end.input + 4 * 10);
    }
  });

  test.for(deltaOf)("in a chat answer: %s", async ([, make]) => {
    const payer = await world.caller();
    const choice = { index: 0, message: make(said), finish_reason: "stop" };
    world.play({ kind: "json", body: { id: "c", choices: [choice] } });
    const { json } = await payer.post("/chat/completions", native);
    expect(endOf(json)).toMatchObject({ reason: "length", output: 10, estimated: true });
    expect(await tokensOf(textIn(json.choices))).toBeLessThanOrEqual(16);
    expect(await costOf(payer)).toBe(endOf(json).input + 4 * 10);
  });

  test("what a router says twice counts once", async () => {
    const payer = await world.caller();
    const thought = many.slice(0, 8).join("");
    const delta = { reasoning: thought, reasoning_details: [{ text: thought }] };
    const end = { ...chunk({}), choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };
    world.play({ kind: "events", events: [chunk(delta), end] });
    const shown = endOfStream(await payer.stream("/chat/completions", { ...native, ...asChunk }));
    expect(shown).toMatchObject({ reason: "stop", output: 8, estimated: true });
  });

  const itemsOf: [string, (text: string) => object][] = [
    ["a call", (args) => ({ type: "function_call", call_id: "c", name: "f", arguments: args })],
    ["reasoning", (text) => ({ type: "reasoning", summary: [{ type: "summary_text", text }] })],
    ["code", (code) => ({ type: "code_interpreter_call", id: "x", code })],
    ["an action", (text) => ({ type: "local_shell_call", id: "x", action: { command: [text] } })],
    ["a type of its own", (text) => ({ type: "novel_call", id: "x", payload: { text } })],
  ];
  test.for(itemsOf)("in items of a response that are shown whole: %s", async ([, make]) => {
    const body = { model: "scripted", input: "Hi", max_output_tokens: 10 };
    const item = make(said);
    const response = { id: "r", status: "completed", output: [item] };
    const streams: Record<string, unknown>[][] = [
      [{ type: "response.output_item.done", output_index: 0, item }],
      [{ type: "response.completed", response }],
    ];
    for (const events of streams) {
      const payer = await world.caller();
      const begun = { type: "response.created", response: { id: "r", status: "in_progress" } };
      world.play({ kind: "events", events: [begun, ...events] });
      const stream = await payer.stream("/responses", body);
      const last = stream.findLast(({ json }) => json)?.json;
      expect(last.type).toBe("response.incomplete");
      expect(endOf(last.response)).toMatchObject({ output: 10, estimated: true });
      const given = stream.reduce((most, { data }) => Math.max(most, data.length), 0);
      expect(given).toBeLessThan(said.length / 2);
      expect(await costOf(payer)).toBe(last.response.usage.input_tokens + 4 * 10);
    }
    const payer = await world.caller();
    world.play({ kind: "json", body: response });
    const { json } = await payer.post("/responses", body);
    expect(json).toMatchObject({ status: "incomplete", usage: { output_tokens: 10 } });
    expect(JSON.stringify(json.output).length).toBeLessThan(500);
  });

  test("reasoning that a chat stream does not show is counted and cut", async () => {
    const payer = await world.caller();
    const at = { output_index: 0, item_id: "rs_1" };
    const events = many.map((delta) => ({
      type: "response.reasoning_text.delta",
      ...at,
      content_index: 0,
      delta,
    }));
    world.play({ kind: "events", events });
    const asked = { model: "scripted", messages, max_tokens: 10, ...asChunk };
    const end = endOfStream(await payer.stream("/chat/completions", asked));
    expect(end).toMatchObject({ reason: "length", output: 10, estimated: true });
  });
});

describe("an upstream without usage: the estimate stands in the answer", () => {
  const deltas = many.slice(0, 6);
  const all: [string, string, object][] = [
    ...ways.slice(0, 3).map(([name, path, body]): [string, string, object] => [name, path, body]),
    ["compaction", "/responses/compact", { model: "scripted", input: "Hi" }],
  ];
  test.for(all)("%s", async ([, path, body]) => {
    const payer = await world.caller();
    world.play({ kind: "ok", deltas, usage: null });
    const { json } = await payer.post(path, body);
    const { input, output, estimated } = endOf(json);
    expect(estimated).toBe(true);
    // A compaction's sealed state hides the other tokens.
    expect(output).toBe(path.endsWith("compact") ? 2 : 6);
    expect(input).toBeGreaterThanOrEqual(await tokensOf(`${developerPrompt}Hi`));
    expect(json.usage.total_tokens).toBe(input + output);
    expect(await costOf(payer)).toBe(input + 4 * output);
  });

  test.for(all.slice(0, 3))(
    "and in its stream, and in what is kept: %s",
    async ([, path, body]) => {
      const payer = await world.caller();
      world.play({ kind: "ok", deltas, usage: null });
      const asked = { ...body, ...asChunk };
      const idempotencyKey = "kept";
      const first = endOfStream(await payer.stream(path, asked, { idempotencyKey }));
      expect(first).toMatchObject({ output: 6, estimated: true });
      const again = endOfStream(await payer.stream(path, asked, { idempotencyKey }));
      const whole = endOf((await payer.post(path, body, { idempotencyKey })).json);
      for (const { input, output, estimated } of [again, whole]) {
        expect({ input, output, estimated }).toEqual({
          input: first.input,
          output: 6,
          estimated: true,
        });
      }
      expect(await costOf(payer)).toBe(first.input + 4 * 6);
    },
  );

  test("a chat stream that asked for no usage gets none", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", deltas, usage: null });
    const events = await payer.stream("/chat/completions", { model: "legacy", messages });
    expect(events.some(({ json }) => json?.usage)).toBe(false);
    expect(await costOf(payer)).toBeGreaterThan(24);
  });
});

describe("input counts, in a field of any name", () => {
  test("a tool's schema under the name of an image's bytes", async () => {
    const payer = await world.caller();
    const words = many.slice(0, 2_000).join("");
    const tool = { type: "function", name: "f", parameters: { type: "object", result: words } };
    world.play({ kind: "ok", usage: null });
    const { json } = await payer.post("/responses", {
      model: "scripted",
      input: "Hi",
      tools: [tool],
    });
    expect(json.usage.input_tokens).toBeGreaterThan(2_000);
    expect(await costOf(payer)).toBe(json.usage.input_tokens + 4 * json.usage.output_tokens);
  });
});

test("a stream past its bound closes its upstream", async () => {
  const payer = await world.caller();
  const seen = world.play({ kind: "huge", events: 1e6, deltaBytes: 40 });
  const body = { model: "scripted", input: "Hi", max_output_tokens: 5 };
  const events = await payer.stream("/responses", body);
  expect(events.findLast(({ json }) => json)?.json.type).toBe("response.incomplete");
  await until("the end of the request upstream", async () => seen[0]?.aborted === true);
});
