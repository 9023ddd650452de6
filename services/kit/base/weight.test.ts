import { describe, expect, test } from "vitest";
import { type JsonValue, parseJsonBody } from "./json.ts";
import { growthOf, mayGrow } from "./text-growth.ts";
import { weightOf } from "./weight.ts";

const weigh = (value: JsonValue) => [
  weightOf(value, 1_000),
  weightOf(value, 1_000, Buffer.from(JSON.stringify(value))),
];

test("a text weighs at least its bytes in NFC, which some tokenizers read", () => {
  for (const character of ["\u{1d160}", "\ufb2c", "\u0344", "\u0958", "é", "ế", "川"]) {
    const text = character.repeat(100);
    const least = Buffer.byteLength(text.normalize("NFC"));
    for (const weight of weigh({ input: text })) expect(weight).toBeGreaterThanOrEqual(least);
  }
});

test("every character that is longer in NFC is known to be", () => {
  const missed: string[] = [];
  for (let codePoint = 0x80; codePoint < 0x11_0000; codePoint++) {
    if (codePoint >= 0xd800 && codePoint < 0xe000) continue;
    const text = String.fromCodePoint(codePoint);
    const more = Buffer.byteLength(text.normalize("NFC")) - Buffer.byteLength(text);
    if (more > 0 && (!mayGrow(text) || growthOf(text, "NFC") !== more)) missed.push(text);
  }
  expect(missed).toEqual([]);
});

test("tools and calls weigh what Go and indentation make of them", () => {
  const go = (text: string) => text.replaceAll(/[<>&\u2028]/g, "\\u0000").length;
  const text = "<&>\u2028".repeat(1_000);
  const call = { function: { name: "f", arguments: text } };
  for (const value of [
    { tools: [{ description: text }] },
    { messages: [{ tool_calls: [call] }] },
  ]) {
    for (const weight of weigh(value)) expect(weight).toBeGreaterThanOrEqual(go(text));
  }
  const nested = (levels: number): JsonValue => (levels === 0 ? [] : [nested(levels - 1)]);
  const tools = nested(100);
  const lines = JSON.stringify(tools, null, 4).split("\n");
  const tokens = lines.reduce((sum, line) => sum + 2 + Math.floor(line.search(/\S/) / 16), 0);
  for (const weight of weigh({ tools })) expect(weight).toBeGreaterThanOrEqual(tokens);
  // A text that is read as text alone is not written again.
  for (const weight of weigh({ input: text })) {
    expect(weight).toBeLessThan(2 * Buffer.byteLength(text));
  }
});

describe("a body's weight by its source is what it is by its values", () => {
  const weigh = (text: string, withSource: boolean) => {
    const source = Buffer.from(text);
    return weightOf(parseJsonBody(source), 10, withSource ? source : undefined);
  };
  test.each([
    ["plain", '{"a":"b","c":[1,true,null,{"d":"e"}]}'],
    ["spaced", ' { "a" : [ "b" , 1.50 ] } '],
    ["other alphabets", '{"ß":"川 — 𝄞"}'],
    ["short escapes", '{"a\\n":"\\t\\"\\\\ \\b\\f\\r"}'],
    ["a backslash before a u", '{"a":"c:\\\\users\\\\n"}'],
    ["long escapes", '{"a":"\\u0041\\u00e9\\ud834\\udd1e\\u0000\\u001f"}'],
    ["an escape that need not be", '{"a":"https:\\/\\/example.org"}'],
    ["half a surrogate pair", '{"a":"\\ud83d"}'],
  ])("%s", (_, text) => {
    expect(weigh(text, true)).toBe(weigh(text, false));
  });

  test("a name that stands twice weighs no less than its last value", () => {
    const text = '{"a":"\\n\\n","a":"b"}';
    expect(weigh(text, true)).toBeGreaterThanOrEqual(weigh(text, false));
  });
});
