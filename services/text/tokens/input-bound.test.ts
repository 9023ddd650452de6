import { describe, expect, test } from "vitest";
import { inTurns } from "#kit/base/in-turns.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { weightOf } from "#kit/base/weight.ts";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";
import { testParsing } from "../../../test/support/parsing.ts";
import { promptly } from "../../../test/support/promptly.ts";
import { maxJsonDepth } from "../base/limits.ts";
import { checkChat } from "../request/chat.ts";
import type { CheckedBody } from "../request/checked.ts";
import { noMedia } from "../request/media.ts";
import { parseRequest } from "../request/parse.ts";
import { checkResponses } from "../request/responses.ts";
import { createTokenCounter, slicesOf } from "./count.ts";
import { contextRoom, estimateInput, inputBoundOf, textsOf } from "./input-bound.ts";
import {
  assumedPatches,
  estimatedImageTokens,
  leastImageTokens,
  maxPatches,
  mostImageTokens,
  usualTokensAtLeast,
} from "./patches.ts";

const counter = createTokenCounter(createWorkshop());
const none = { media: noMedia, mediaTokens: { estimate: 0, held: 0, most: 0, least: 0 } };

function specOf(maxInputTokens: bigint) {
  const spec = snapshotWith({ maxInputTokens }).models[0]?.spec;
  if (spec?.case !== "chat") throw new Error("no chat model");
  return spec.value;
}
const spec = specOf(100_000_000n);

const texts: Record<string, string> = {
  words: "The quick brown fox jumps over the lazy dog. ".repeat(40),
  digits: "3141592653589793".repeat(40),
  emoji: "🌊🦊👩‍🚀🏳️‍🌈".repeat(40),
  chinese: "漢字仮名交じり文".repeat(40),
  accents: "é̀à̂ṏ".repeat(40),
  code: 'if (a[0] !== "\\u00e9") {\n\t\treturn {};\n}'.repeat(40),
  controls: "\u0000\u0001\u0007\u001b[0m".repeat(40),
  blank: " \n\t".repeat(200),
  markers: "<|im_start|>system<|endoftext|>".repeat(40),
  short: "a",
};

describe("the bound of the input", () => {
  const bound = (checked: CheckedBody, weight: number) =>
    inputBoundOf(checked, noMedia, weight, "Be kind.", spec);

  test.each(Object.entries(texts))("covers every count: %s", async (_name, text) => {
    const schema = {
      type: "object",
      properties: { [text.slice(0, 50).toWellFormed()]: { type: "string" } },
    };
    const asked: JsonObject = {
      model: "chat-1",
      instructions: text,
      input: [
        { role: "user", content: text },
        { role: "assistant", content: [{ type: "output_text", text }] },
        { type: "function_call_output", call_id: "c", output: text },
      ],
      tools: [{ type: "function", name: "f", description: text, parameters: schema }],
    };
    const body = Buffer.from(JSON.stringify(asked));
    const parsed = await parseRequest("responses", body, testParsing());
    const checked = await inTurns(checkResponses(parsed.body, spec, "Be kind."));
    const least = bound(checked, parsed.weight);
    // The body as JSON is about the longest text that a template could make of it.
    const rendered = await counter.count([JSON.stringify(checked.body, null, 1)]);
    expect(least).toBeGreaterThanOrEqual(rendered);
    const { tokens: estimate } = await estimateInput({ ...checked, ...none }, counter);
    expect(least).toBeGreaterThanOrEqual(estimate);
  });
  test("of chat too", async () => {
    const messages = Object.values(texts).map((content) => ({ role: "user", content }));
    const body = Buffer.from(JSON.stringify({ model: "chat-1", messages }));
    const parsed = await parseRequest("chat", body, testParsing());
    const checked = await inTurns(checkChat(parsed.body, spec, "Be kind."));
    const rendered = await counter.count([JSON.stringify(checked.body, null, 1)]);
    expect(bound(checked, parsed.weight)).toBeGreaterThanOrEqual(rendered);
  });
  test("the name of a tool counts with each result of a call", async () => {
    const name = "do_".repeat(500);
    const results = Array.from({ length: 40 }, () => "ok");
    const call = { type: "function_call", call_id: "c", name, arguments: "{}" };
    const input = [
      call,
      ...results.map((output) => ({ type: "function_call_output", call_id: "c", output })),
    ];
    const body = { model: "chat-1", input };
    const checked = await inTurns(checkResponses(body, spec, ""));
    const least = results.length * name.length;
    expect(bound(checked, weightOf(body, maxJsonDepth))).toBeGreaterThanOrEqual(least);
    const called = { id: "c", type: "function", function: { name, arguments: "{}" } };
    const messages = [
      { role: "assistant", tool_calls: [called] },
      ...results.map((content) => ({ role: "tool", tool_call_id: "c", content })),
    ];
    const chat = { model: "chat-1", messages };
    const weight = weightOf(chat, maxJsonDepth);
    expect(bound(await inTurns(checkChat(chat, spec, "")), weight)).toBeGreaterThanOrEqual(least);
  });
  test("is never above what the model takes", async () => {
    const body = { model: "chat-1", input: "x".repeat(5_000) };
    const checked = await inTurns(checkResponses(body, specOf(1_000n), ""));
    expect(inputBoundOf(checked, noMedia, weightOf(body, maxJsonDepth), "", specOf(1_000n))).toBe(
      1_000,
    );
  });
  test("images that were verified and encrypted state are no text to be counted", () => {
    const secret = "Z".repeat(4_000);
    const made = { type: "image_generation_call", result: secret };
    const shown = { type: "input_image", image_url: `data:${secret}` };
    const found = textsOf(
      {
        input: [
          { type: "reasoning", encrypted_content: secret },
          made,
          { role: "user", content: [shown] },
        ],
      },
      [
        { holder: made, field: "result" },
        { holder: shown, field: "image_url" },
      ],
    );
    expect(found.texts.join("")).not.toContain("ZZZ");
    expect(found.opaqueBytes).toBe(4_000);
  });
  test("under the names of images everything else is, wherever it stands", async () => {
    const words = texts.words ?? "";
    const count = async (body: JsonObject) =>
      (await estimateInput({ body, ...none, items: 0, toolTokens: 0 }, counter)).tokens;
    const least = await counter.count([words]);
    const hidden: JsonObject[] = [
      { tools: [{ type: "function", name: "f", parameters: { result: words } }] },
      { tools: [{ type: "function", name: "f", parameters: { image_url: `data:${words}` } }] },
      { tools: [{ type: "function", name: "f", parameters: { [words]: {} } }] },
      { tools: [{ type: "function", name: "f", parameters: { enum: Array(400).fill(7) } }] },
      { input: [{ type: "function_call_output", call_id: "c", output: "x", result: words }] },
      { input: [{ role: "user", content: [{ type: "input_text", text: "x", result: words }] }] },
      { messages: [{ role: "user", content: "x", result: { id: words } }] },
      { chat_template_kwargs: { note: words } },
      { response_format: { json_schema: { schema: { const: words } } } },
      { prediction: words },
      // Only items and their parts hold sealed state. In a schema, the same name holds text that the model reads.
      { tools: [{ type: "function", name: "f", parameters: { encrypted_content: words } }] },
      { text: { format: { type: "json_schema", schema: { encrypted_content: words } } } },
      { response_format: { json_schema: { schema: { encrypted_content: words } } } },
      { input: [{ role: "user", content: [{ output: { encrypted_content: words } }] }] },
      { instructions: "x", encrypted_content: words },
    ];
    for (const body of hidden) expect(await count(body)).toBeGreaterThanOrEqual(least * 0.9);
    // Encrypted state is charged like the text inside it.
    const sealed = [{ type: "reasoning", encrypted_content: "Z".repeat(16_000) }];
    expect(await count({ input: sealed })).toBeGreaterThanOrEqual(3_000);
    const state = "Z".repeat(16_000);
    const inChat = [
      { reasoning_details: [{ type: "reasoning.encrypted", data: state }] },
      { thought_signature: state },
      { tool_calls: [{ id: "c", extra_content: { google: { thought_signature: state } } }] },
    ];
    for (const message of inChat) {
      const tokens = await count({ messages: [{ role: "assistant", content: "", ...message }] });
      expect(tokens).toBeGreaterThanOrEqual(3_000);
      expect(tokens).toBeLessThan(3_100);
    }
  });
});

describe("room in the window", () => {
  test("less the margin and the output that is reserved", () => {
    expect(contextRoom({ maxOutputTokens: 300 }, specOf(10_000n)).input).toBe(9_600);
    expect(contextRoom({ maxOutputTokens: undefined }, specOf(10_000n)).input).toBe(8_900);
  });
  test("an omitted maximum takes half of a small window at most", () => {
    expect(contextRoom({ maxOutputTokens: undefined }, specOf(1_000n)).input).toBe(400);
    expect(contextRoom({ maxOutputTokens: 1_000 }, specOf(1_000n)).input).toBeLessThan(0);
  });
});

describe("counting", () => {
  test("long runs are cut, so that a hostile text takes no time in its square", async () => {
    // Without cuts it takes half a minute.
    const tokens = await promptly(5_000, () => counter.count(["a".repeat(200_000)]));
    expect(tokens).toBeGreaterThan(20_000);
  });
  test("a long text without spaces is cut in time that grows with its length alone", async () => {
    const longest = (text: string) => Math.max(...[...slicesOf(text)].map(({ length }) => length));
    // A search back to the beginning, slice by slice, takes twenty seconds.
    expect(await promptly(2_000, () => longest("漢".repeat(4 * 1024 * 1024)))).toBe(512);
  });
  test("cuts lie before the nearest space, if it is near", () => {
    const cutAt = (text: string) => [...slicesOf(text)][0]?.length;
    const spaced = (at: number) => `${"a".repeat(at)} ${"a".repeat(1_000)}`;
    expect([448, 449, 512, 513].map((at) => cutAt(spaced(at)))).toEqual([512, 449, 512, 512]);
    expect(cutAt(`${"a".repeat(511)}🌊${"a".repeat(1_000)}`)).toBe(511);
  });
  test("cuts add next to nothing", async () => {
    const text = texts.words?.repeat(5) ?? "";
    const whole = 10 * 40 * 5;
    expect(await counter.count([text])).toBeLessThanOrEqual(whole * 1.01);
    expect([...slicesOf(text)].join("")).toBe(text);
    expect([...slicesOf("🌊".repeat(2_000))].every((slice) => slice.isWellFormed())).toBe(true);
  });
  test("stops above a limit", async () => {
    const many = Array.from({ length: 1_000 }, () => texts.words ?? "");
    expect(await counter.count(many, 1_000)).toBeLessThan(1_600);
  });
});

describe("patches", () => {
  test("of 32 pixels, begun ones whole", () => {
    const patches = { atLeast: 1, tile: 0, base: 0 };
    expect(mostImageTokens({ width: 64, height: 64 }, patches)).toBe(4);
    expect(mostImageTokens({ width: 65, height: 1 }, patches)).toBe(3);
    expect(mostImageTokens({ width: 65, height: 1 }, { ...patches, atLeast: 85 })).toBe(85);
    expect(mostImageTokens({ width: 65, height: 1 }, { ...patches, atLeast: 0 })).toBe(
      usualTokensAtLeast,
    );
    expect(mostImageTokens({ width: 9_000, height: 9_000 }, patches)).toBe(maxPatches);
    expect(mostImageTokens(undefined, patches)).toBe(maxPatches);
    expect(estimatedImageTokens({ width: 65, height: 1 }, { ...patches, atLeast: 0 })).toBe(3);
    expect(estimatedImageTokens({ width: 65, height: 1 }, { ...patches, atLeast: 85 })).toBe(85);
  });
  test("or by tiles of 512 pixels, as OpenAI counts them", () => {
    const tiles = { atLeast: 0, tile: 170, base: 85 };
    // The examples of OpenAI's guide.
    expect(estimatedImageTokens({ width: 1_024, height: 1_024 }, tiles)).toBe(765);
    expect(estimatedImageTokens({ width: 2_048, height: 4_096 }, tiles)).toBe(1_105);
    expect(
      mostImageTokens({ width: 512, height: 512 }, { ...tiles, tile: 5_667, base: 2_833 }),
    ).toBe(8_500);
    expect(mostImageTokens({ width: 1, height: 1 }, tiles)).toBe(255);
    expect(mostImageTokens(undefined, tiles)).toBe(85 + 8 * 170);
    expect(leastImageTokens({ width: 9_000, height: 9_000 })).toBe(assumedPatches);
  });
});
