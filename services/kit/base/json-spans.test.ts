import { expect, test } from "vitest";
import { inTurns } from "./in-turns.ts";
import { type Span, spansOf } from "./json-spans.ts";

const partsOf = async (json: string, name = "messages"): Promise<string[]> => {
  const bytes = Buffer.from(json);
  const spans = await inTurns<Span[]>(spansOf(bytes, name));
  return spans.map(([start, end]) => bytes.subarray(start, end).toString());
};

test.each<[string, string[]]>([
  [
    '{"messages":[{"a":[1,{"b":2}]} , "x,]" ,[ ] , 1.0,null]}',
    ['{"a":[1,{"b":2}]}', '"x,]"', "[ ]", "1.0", "null"],
  ],
  ['{ "a" : {"messages":[1]} , "messages" : [ 2 ] }', ["2"]],
  ['{"x":"messages","messages":[{"messages":[3]}],"y":[4]}', ['{"messages":[3]}']],
  ['{"messages":[1],"messages":["ü\\"]\\\\"]}', ['"ü\\"]\\\\"']],
  ['{"messages":[]}', []],
  ['{"messages":{"a":[1]},"b":[2]}', []],
  ['{"other":[1]}', []],
])("%s", async (json, parts) => {
  JSON.parse(json);
  expect((await partsOf(json)).map((part) => part.trim())).toEqual(parts);
});

test("each element is the one that a parser finds", async () => {
  const messages = Array.from({ length: 300 }, (_, at) => ({
    ...{ role: "user", at, text: `"\\${"\\".repeat(at % 5)}"[{`, deep: [[{ at: [at] }], {}, []] },
  }));
  const parts = await partsOf(JSON.stringify({ a: [1], messages, b: { messages: [] } }, null, 1));
  expect(parts.map((part) => JSON.parse(part))).toEqual(messages);
});
