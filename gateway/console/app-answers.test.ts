import type { Token } from "marked";
import { describe, expect, test } from "vitest";
import { tokensOf } from "./app/screens/playground/markdown-tokens.ts";
import { messagesBody } from "./app/screens/playground/messages.ts";
import { prettyJson } from "./app/screens/playground/pretty-json.ts";

type Parts = { tokens?: Token[]; items?: Token[]; rows?: Token[][] };

const within = ({ tokens = [], items = [], rows = [] }: Parts): Token[] => [
  ...tokens,
  ...items,
  ...rows.flat(),
];

/** Tokens in each other, at most, and all tokens. It calls no function in itself, because the tokens may be very deep. */
function sizeOf(tokens: Token[]): { levels: number; count: number } {
  let [levels, count] = [0, 0];
  for (
    let level = tokens;
    level.length > 0;
    level = level.flatMap((token) => within(token as Parts))
  ) {
    levels += 1;
    count += level.length;
  }
  return { levels, count };
}

describe("Markdown of a hostile answer", () => {
  const lists = Array.from({ length: 400 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n");
  const bombs: [name: string, text: string][] = [
    ["quotes", `${">".repeat(30_000)} a`],
    ["quotes that go on without their mark", `${">".repeat(30_000)} a\nb`],
    ["lists on one line", `${"- ".repeat(30_000)}a`],
    ["lists below each other", lists],
    ["quotes and lists by turns", `${"> - ".repeat(8_000)}a`],
    ["emphasis", `${"*a **a ".repeat(280)}${"b** b*".repeat(280)}`],
    ["links", `${"![".repeat(600)}a${"](b)".repeat(600)}`],
  ];

  test.each(bombs)("%s in each other", (_, text) => {
    expect(sizeOf(tokensOf(text)).levels).toBeLessThan(100);
  });

  test("a short text does not become a huge table", () => {
    const text = `${"|a".repeat(2_000)}|\n${"|-".repeat(2_000)}|\n${"|\n".repeat(2_000)}`;
    expect(sizeOf(tokensOf(text)).count).toBeLessThan(100);
  });

  test("a long line is text", () => {
    expect(sizeOf(tokensOf("*a ".repeat(20_000))).count).toBe(2);
  });

  test("what a reader writes keeps its form", () => {
    const text = "> - a *b **c***\n>   > d\n\n| a | b |\n| - | - |\n| 1 | 2 |\n";
    const types = tokensOf(text).map(({ type }) => type);
    expect(types).toEqual(["blockquote", "space", "table"]);
    expect(sizeOf(tokensOf(text)).levels).toBeGreaterThan(5);
  });
});

describe("JSON of an answer", () => {
  test("has a line for each value", () => {
    expect(prettyJson(' {"a":[1,"b c"]}')).toBe('{\n  "a": [\n    1,\n    "b c"\n  ]\n}');
  });

  test.each(['{"id":12345678901234567890}', '{"price":1.50}', '{"a":1,"a":2}', "[1] says a book"])(
    "is not shown as another: %s",
    (text) => expect(prettyJson(text)).toBeUndefined(),
  );

  test("does not grow without bound", () => {
    expect(prettyJson("[".repeat(2_000) + "]".repeat(2_000))).toBeUndefined();
  });
});

describe("code for Messages after an odd answer", () => {
  test("calls whose arguments were cut, and reasoning with content", () => {
    const input = [
      { role: "user", content: "Look." },
      { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
      { type: "reasoning", summary: [], content: null },
      { type: "function_call", call_id: "c1", name: "look", arguments: '{"at":' },
    ];
    expect(messagesBody({ model: "chat-1", input })?.messages).toEqual([
      { role: "user", content: "Look." },
      { role: "assistant", content: [{ type: "tool_use", id: "c1", name: "look", input: {} }] },
    ]);
  });
});
