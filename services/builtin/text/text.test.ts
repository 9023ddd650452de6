import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/base/json.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  collect,
  testContext,
  testRequest,
  testUpstream,
} from "../../../test/support/text-requests.ts";
import { createTextUpstreams } from "../../upstreams/text/index.ts";
import {
  bytesOfBody,
  type JsonAnswer,
  type StreamAnswer,
  type TextOperation,
} from "../../upstreams/text/port.ts";
import { count, cut } from "./tokens.ts";

const texts = createTextUpstreams(testContext());
const builtin = testUpstream("BUILTIN");

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape.
type Any = any;

async function ask(fields: JsonObject, operation: TextOperation = "responses") {
  const answer = (await texts.send(testRequest(operation, [builtin], { fields }))) as JsonAnswer;
  const body: Any = JSON.parse(Buffer.from(bytesOfBody(answer.body)).toString());
  return { answer, body, text: body.output?.[0]?.content?.[0]?.text as string };
}

async function streamed(fields: JsonObject, operation: TextOperation = "responses") {
  const request = testRequest(operation, [builtin], { fields, stream: true });
  return collect((await texts.send(request)) as StreamAnswer);
}

const fn = (name: string, parameters: JsonObject = { type: "object", properties: {} }) => ({
  type: "function",
  name,
  parameters,
});

describe("words", () => {
  test("the same input gives the same text, another input another", async () => {
    const first = await ask({ input: "Tell me about foxes" });
    const again = await ask({ input: "Tell me about foxes" });
    const other = await ask({ input: "Tell me about badgers" });
    expect(again.text).toBe(first.text);
    expect(other.text).not.toBe(first.text);
    expect(first.text).toContain("foxes");
    expect(first.answer.usage?.outputTokens).toBeGreaterThan(30);
    expect(first.answer.usage?.outputTokens).toBeLessThan(250);
  });

  test("never a word of the instructions, in any operation", async () => {
    for (const operation of ["responses", "compact", "chat"] as const) {
      const { answer } = await ask({}, operation);
      expect(Buffer.from(bytesOfBody(answer.body)).toString()).not.toContain("SECRET");
    }
    expect((await streamed({})).wire).not.toContain("SECRET");
  });

  test.each([
    ["Say hello", "hello"],
    ['Please reply with exactly the word "pong".', "pong"],
    ["Repeat after me: to be, or not to be", "to be, or not to be"],
  ])("%s", async (input, said) => {
    expect((await ask({ input })).text).toBe(said);
  });

  test.each([
    ["Warum ist der Himmel blau?", /Du schreibst|Nehmen wir|ein schöner Satz/],
    ["Bonjour, pourquoi le ciel est bleu ?", /Vous écrivez|voilà/],
    ["Hola, ¿cómo está el tiempo en Madrid?", /Escribes|buena frase/],
    ["Why is the sky blue? Answer in German.", /Du schreibst|Nehmen wir|ein schöner Satz/],
    ["Hi. What is 17 * 23?", /17 × 23 = 391/],
  ])("%s", async (input, expected) => {
    expect((await ask({ input })).text).toMatch(expected);
  });

  test("it counts turns and remembers how they began", async () => {
    const input = [
      { role: "user", content: "Let us talk about lighthouses" },
      { role: "assistant", content: "Gladly." },
      { role: "user", content: [{ type: "input_text", text: "And foghorns?" }] },
    ];
    expect((await ask({ input })).text).toMatch(/turn 2 .*“Let us talk about lighthouses”/);
  });

  test("it says what it sees of images", async () => {
    const png = Buffer.alloc(33);
    png.write("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "latin1");
    png.writeUInt32BE(640, 16);
    png.writeUInt32BE(480, 20);
    const jpeg = Buffer.from(
      "ffd8ffe000104a46494600010100000100010000ffe10008000000000000ffffc2001108012c019003",
      "hex",
    );
    const url = (type: string, bytes: Buffer) =>
      `data:image/${type};base64,${bytes.toString("base64")}`;
    const images = [url("png", png), url("jpeg", jpeg), "https://example.com/cat.png"];
    const parts = images.map((image_url) => ({ type: "input_image", image_url, detail: "auto" }));
    const content = [{ type: "input_text", text: "Look" }, ...parts];
    const { text, answer } = await ask({ input: [{ role: "user", content }] });
    expect(text).toContain("Image 1 is a PNG of 640 by 480 pixels.");
    expect(text).toContain("Image 2 is a JPEG of 400 by 300 pixels.");
    expect(text).toContain("Image 3 is behind a URL");
    expect(text).not.toContain("example.com");
    // 20 × 15 and 13 × 10 patches and the unknown one, not the base64.
    expect(answer.usage?.inputTokens).toBeGreaterThan(300 + 130 + 64);
    expect(answer.usage?.inputTokens).toBeLessThan(300 + 130 + 64 + 40);
  });
});

test("a very long input is answered all the same, and not at length", async () => {
  const long = "Say ".concat("x y1 - ".repeat(100_000), " ".repeat(100_000), "7");
  const { text, answer } = await ask({ input: long });
  expect(text.length).toBeLessThan(5000);
  expect(answer.usage?.inputTokens).toBeGreaterThan(100_000);
});

describe("tokens", () => {
  test("usage counts what is there", async () => {
    const { body, text } = await ask({ input: "Tell me about foxes" });
    expect(body.usage.output_tokens).toBe(count(text));
    expect(body.usage.output_tokens_details).toEqual({ reasoning_tokens: 0 });
    expect(body.usage.total_tokens).toBe(body.usage.input_tokens + body.usage.output_tokens);
    const longer = await ask({ input: "Tell me about foxes and many other kinds of animals" });
    expect(longer.body.usage.input_tokens).toBeGreaterThan(body.usage.input_tokens);
  });

  test("long texts, runs without breaks and names of special tokens are counted", async () => {
    const words = "The quick brown fox jumps over the lazy dog. ".repeat(200);
    const { countTokens } = await import("gpt-tokenizer/encoding/o200k_base");
    expect(count(words)).toBe(countTokens(words));
    expect(count("a".repeat(20_000))).toBeGreaterThan(2000);
    expect(count("<|endoftext|>")).toBeGreaterThan(1);
    const long = "word ".repeat(400_000);
    expect(count(long)).toBeGreaterThan(350_000);
  });

  test("max_output_tokens is kept, to the token", async () => {
    const whole = await ask({ input: "Tell me about foxes" });
    const { body, text, answer } = await ask({
      input: "Tell me about foxes",
      max_output_tokens: 7,
    });
    expect(body.status).toBe("incomplete");
    expect(body.incomplete_details).toEqual({ reason: "max_output_tokens" });
    expect(body.output[0].status).toBe("incomplete");
    expect(answer.ending).toBe("incomplete");
    expect(count(text)).toBe(7);
    expect(whole.text.startsWith(text)).toBe(true);
    const { events } = await streamed({ input: "Tell me about foxes", max_output_tokens: 7 });
    expect(events.at(-1)).toMatchObject({ ending: "incomplete", usage: { outputTokens: 7 } });
    expect(cut("🦊🦊🦊🦊", 5)).not.toContain("\uFFFD");
  });
});

describe("tools", () => {
  const parameters = {
    type: "object",
    properties: {
      city: { type: "string" },
      days: { type: "integer", minimum: 1, maximum: 7 },
      unit: { type: "string", enum: ["celsius", "fahrenheit"] },
      when: { $ref: "#/$defs/when" },
      tags: { type: "array", items: { type: "string" }, minItems: 2 },
      verbose: { type: "boolean" },
      note: { type: ["string", "null"] },
      optional: { type: "string" },
    },
    required: ["city", "days", "unit", "when", "tags", "verbose", "note"],
    $defs: { when: { anyOf: [{ type: "null" }, { type: "string", format: "date" }] } },
  };
  const input = "The weather in New York for 9 days, in fahrenheit";

  test("the only function is called, with arguments from the input that fit its schema", async () => {
    const { body, answer } = await ask({ input, tools: [fn("get_weather", parameters)] });
    const [call] = body.output;
    expect(call).toMatchObject({ type: "function_call", name: "get_weather", status: "completed" });
    expect(call.call_id).toMatch(/^call_/);
    expect(JSON.parse(call.arguments)).toEqual({
      city: "New York",
      days: 7,
      unit: "fahrenheit",
      when: "2026-01-01",
      tags: [input, input],
      verbose: true,
      note: input,
    });
    expect(answer.outputText).toContain("New York");
  });

  test("its result is answered in words", async () => {
    const tools = [fn("get_weather", parameters)];
    const { body } = await ask({ input, tools });
    const [call] = body.output;
    const result = { type: "function_call_output", call_id: call.call_id, output: "21 degrees" };
    const answered = await ask({
      input: [{ role: "user", content: input }, call, result],
      tools,
    });
    expect(answered.text).toContain("The tool get_weather answered: 21 degrees");
    const next = [
      { role: "user", content: input },
      call,
      result,
      { role: "user", content: "And?" },
    ];
    expect((await ask({ input: next, tools })).body.output[0].type).toBe("function_call");
  });

  test.each([
    ["two functions", {}, "message"],
    ["required", { tool_choice: "required" }, "beta_thing"],
    ["by name", { tool_choice: { type: "function", name: "alpha" } }, "alpha"],
    [
      "one of them allowed",
      {
        tool_choice: {
          type: "allowed_tools",
          mode: "auto",
          tools: [{ type: "function", name: "alpha" }],
        },
      },
      "alpha",
    ],
  ] as [string, JsonObject, string][])("%s", async (_name, choice, expected) => {
    const tools = [fn("alpha"), fn("beta_thing")];
    const { body } = await ask({ input: "Use the beta one", tools, ...choice });
    const [item] = body.output;
    expect(item.name ?? item.type).toBe(expected);
  });

  test("none is none; hosted tools are not called", async () => {
    const none = await ask({ input, tools: [fn("get_weather")], tool_choice: "none" });
    expect(none.body.output[0].type).toBe("message");
    const search = await ask({ input: "Find me news", tools: [{ type: "web_search" }] });
    expect(search.text).toContain("without any network");
  });

  test("hostile schemas end", async () => {
    const self: JsonObject = {
      type: "object",
      properties: {
        next: { $ref: "#" },
        many: { type: "array", minItems: 50, items: { $ref: "#" } },
      },
      required: ["next", "many"],
    };
    const loop = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } };
    const fan = { allOf: Array(9).fill({ $ref: "#" }), properties: { a: { $ref: "#" } } };
    for (const parameters of [self, loop, fan, { type: "array" }, { allOf: [{ $ref: "#" }] }]) {
      const { body } = await ask({ input: "x", tools: [fn("f", parameters)] });
      expect(typeof JSON.parse(body.output[0].arguments)).toBe("object");
      expect(body.output[0].arguments.length).toBeLessThan(200_000);
    }
  });

  test("structured output fits its format", async () => {
    const format = { type: "json_schema", name: "place", schema: parameters };
    const { text } = await ask({ input, text: { format } });
    expect(JSON.parse(text)).toMatchObject({ city: "New York", unit: "fahrenheit" });
    const free = await ask({ input: "foxes", text: { format: { type: "json_object" } } });
    expect(JSON.parse(free.text)).toMatchObject({ topic: "foxes", turn: 1 });
  });
});

describe("opaque state", () => {
  const input = [
    { role: "user", content: "Let us talk about lighthouses" },
    { role: "assistant", content: "Gladly." },
    { role: "user", content: "And about foghorns" },
  ];

  test("a compaction is read back as input, again after a second one", async () => {
    const first = await ask({ input }, "compact");
    expect(first.body).toMatchObject({ object: "response.compaction", id: expect.any(String) });
    const sealed = first.body.output.at(-1);
    expect(sealed).toMatchObject({ type: "compaction", encrypted_content: expect.any(String) });
    expect(first.answer.opaque).toEqual([sealed.encrypted_content]);
    expect(first.body.usage.input_tokens).toBeGreaterThan(10);
    expect(first.answer.usage?.outputTokens).toBeGreaterThan(0);
    const more = [...first.body.output, { role: "user", content: "What about bells?" }];
    const answered = await ask({ input: more });
    expect(answered.text).toContain("“Let us talk about lighthouses”, “And about foghorns”");
    const second = await ask({ input: more }, "compact");
    const after = [...second.body.output, { role: "user", content: "Where were we?" }];
    expect((await ask({ input: after })).text).toContain("lighthouses”, “And about foghorns”");
  });

  test("foreign and altered state is no harm", async () => {
    const { body } = await ask({ input }, "compact");
    const [sealed] = body.output;
    for (const state of [`${sealed.encrypted_content}x`, "gmb1.AAAA.bad", "gAAAA==", ""]) {
      const items = [
        { ...sealed, encrypted_content: state },
        { role: "user", content: "Hm" },
      ];
      expect((await ask({ input: items })).text).not.toContain("lighthouses");
    }
  });

  test("reasoning is sealed where it is asked for", async () => {
    const include = ["reasoning.encrypted_content"];
    const { answer, body } = await ask({ input: "Hm", include });
    expect(body.output[0]).toMatchObject({ type: "reasoning", summary: [] });
    expect(answer.opaque).toEqual([body.output[0].encrypted_content]);
    const { events } = await streamed({ input: "Hm", include });
    expect(events.flatMap((event) => event.opaque ?? [])).toHaveLength(1);
  });
});

describe("streams", () => {
  test("the deltas are the text; order, numbers and terminal event are right", async () => {
    const whole = await ask({ input: "Tell me about foxes 🦊 and größe" });
    const { events, data } = await streamed({ input: "Tell me about foxes 🦊 and größe" });
    expect(events.map((event) => event.text).join("")).toBe(whole.text);
    expect(data.map((event) => event.sequence_number)).toEqual(data.map((_, i) => i));
    expect(data.slice(0, 4).map((event) => event.type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
    ]);
    expect(data.filter((event) => event.type.endsWith(".delta")).length).toBeGreaterThan(20);
    const last = data.at(-1);
    expect(last.response.output[0].content[0].text).toBe(whole.text);
    expect(events.at(-1)).toMatchObject({ ending: "completed", usage: whole.answer.usage });
    const chat = await streamed({ messages: [{ role: "user", content: "Say hi there" }] }, "chat");
    expect(chat.events.map((event) => event.text).join("")).toBe("hi there");
    expect(chat.data.at(-1).choices[0].finish_reason).toBe("stop");
  });

  test("its pace is the upstream's, and it stops within a pause", async () => {
    const clock = manualClock();
    const slow = createTextUpstreams(testContext({ clock }));
    const caller = new AbortController();
    const upstream = testUpstream("BUILTIN", { tokenDelayMs: 50 });
    const request = testRequest("responses", [upstream], {
      fields: { input: "Say one two three" },
      stream: true,
      signal: caller.signal,
    });
    const answer = (await slow.send(request)) as StreamAnswer;
    const batches = answer.batches[Symbol.asyncIterator]();
    const opening = await batches.next();
    expect(opening.value?.every((event: { text: string }) => event.text === "")).toBe(true);
    const next = batches.next();
    await clock.advance(49);
    const early = await Promise.race([next, Promise.resolve("not yet")]);
    expect(early).toBe("not yet");
    await clock.advance(1);
    expect((await next).value?.[0]?.text).toBe("one");
    const waiting = batches.next();
    caller.abort(new Error("left"));
    await expect(waiting).rejects.toThrow("left");
  });
});
