import { describe, expect, test } from "vitest";
import type { JsonObject } from "#kit/json.ts";
import { weightOf } from "#kit/json-weight.ts";
import { snapshotWith } from "../../../test/contract/usage.world.ts";
import { testParsing } from "../../../test/support/parsing.ts";
import { maxJsonDepth } from "../limits.ts";
import { checkChat } from "../request/chat.ts";
import type { CheckedBody } from "../request/checked.ts";
import { parseRequest } from "../request/parse.ts";
import { checkResponses } from "../request/responses.ts";
import { createTokenCounter, slicesOf } from "./count.ts";
import { contextRoom, estimateInput, inputBoundOf, textsOf } from "./input-bound.ts";
import { assumedPatches, boundPatches, leastPatches, maxPatches } from "./patches.ts";

const counter = createTokenCounter();
const noImages = { parts: [], sizes: [], base64Bytes: 0 };

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
  half: "\ud83c".repeat(40),
  blank: " \n\t".repeat(200),
  markers: "<|im_start|>system<|endoftext|>".repeat(40),
  short: "a",
};

describe("the bound of the input", () => {
  const bound = (checked: CheckedBody, weight: number) =>
    inputBoundOf(checked, noImages, weight, "Be kind.", spec);

  test.each(Object.entries(texts))("covers every count: %s", async (_name, text) => {
    const schema = { type: "object", properties: { [text.slice(0, 50)]: { type: "string" } } };
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
    const checked = await checkResponses(parsed.body, spec, "Be kind.");
    const least = bound(checked, parsed.weight);
    // The body as JSON is about the longest that a template could make of it.
    const rendered = await counter.count([JSON.stringify(checked.body, null, 1)]);
    expect(least).toBeGreaterThanOrEqual(rendered);
    const estimate = await estimateInput(checked.body, noImages, checked.items, counter);
    expect(least).toBeGreaterThanOrEqual(estimate);
  });
  test("of chat too", async () => {
    const messages = Object.values(texts).map((content) => ({ role: "user", content }));
    const body = Buffer.from(JSON.stringify({ model: "chat-1", messages }));
    const parsed = await parseRequest("chat", body, testParsing());
    const checked = await checkChat(parsed.body, spec, "Be kind.");
    const rendered = await counter.count([JSON.stringify(checked.body, null, 1)]);
    expect(bound(checked, parsed.weight)).toBeGreaterThanOrEqual(rendered);
  });
  test("is never above what the model takes", async () => {
    const body = { model: "chat-1", input: "x".repeat(5_000) };
    const checked = await checkResponses(body, specOf(1_000n), "");
    expect(inputBoundOf(checked, noImages, weightOf(body, maxJsonDepth), "", specOf(1_000n))).toBe(
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
        { holder: made, field: "result", param: "" },
        { holder: shown, field: "image_url", param: "" },
      ],
    );
    expect(found.texts.join("")).not.toContain("ZZZ");
    expect(found.opaqueBytes).toBe(4_000);
  });
  test("under the names of images everything else is, wherever it stands", async () => {
    const words = texts.words ?? "";
    const count = async (body: JsonObject) => estimateInput(body, noImages, 0, counter);
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
    ];
    for (const body of hidden) expect(await count(body)).toBeGreaterThanOrEqual(least * 0.9);
    // Encrypted state is charged for what it hides.
    const sealed = [{ type: "reasoning", encrypted_content: "Z".repeat(16_000) }];
    expect(await count({ input: sealed })).toBeGreaterThanOrEqual(3_000);
  });
});

describe("room in the window", () => {
  test("less the margin and the output that is reserved", () => {
    expect(contextRoom(300, specOf(10_000n)).input).toBe(9_600);
    expect(contextRoom(undefined, specOf(10_000n)).input).toBe(8_900);
  });
  test("an omitted maximum takes half of a small window at most", () => {
    expect(contextRoom(undefined, specOf(1_000n)).input).toBe(400);
    expect(contextRoom(1_000, specOf(1_000n)).input).toBeLessThan(0);
  });
});

describe("counting", () => {
  test("long runs are cut, so that a hostile text takes no time in its square", async () => {
    const startedAt = performance.now();
    expect(await counter.count(["a".repeat(200_000)])).toBeGreaterThan(20_000);
    // Uncut it takes half a minute.
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
  test("a long text without spaces is cut in time that grows with its length alone", () => {
    const longest = (text: string) => Math.max(...[...slicesOf(text)].map(({ length }) => length));
    const startedAt = performance.now();
    expect(longest("漢".repeat(4 * 1024 * 1024))).toBe(512);
    // A search back to the beginning, slice by slice, takes twenty seconds.
    expect(performance.now() - startedAt).toBeLessThan(2_000);
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
    expect(boundPatches({ width: 64, height: 64 }, 1)).toBe(4);
    expect(boundPatches({ width: 65, height: 1 }, 1)).toBe(3);
    expect(boundPatches({ width: 65, height: 1 }, 85)).toBe(85);
    expect(boundPatches({ width: 9_000, height: 9_000 }, 85)).toBe(maxPatches);
    expect(boundPatches(undefined, 85)).toBe(maxPatches);
    expect(leastPatches({ width: 9_000, height: 9_000 })).toBe(assumedPatches);
  });
});
