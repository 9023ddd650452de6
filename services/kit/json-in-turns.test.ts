import { expect, test } from "vitest";
import type { JsonObject } from "./json.ts";
import { jsonInTurns } from "./json-in-turns.ts";

const long = 'a"\n\\é🦊\ud83d '.repeat(60_000);

test.each<[string, JsonObject]>([
  ["small", { a: 1, b: [null, true, "x"], c: {} }],
  ["a long string", { a: long, b: [long, "x"] }],
  [
    "many values",
    { a: Array.from({ length: 100_000 }, (_, n) => ({ [`n${n}`]: [n, `${n}`, null] })) },
  ],
  ["names", Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`"${n}`, {}]))],
  ["empty ones", { pad: long, a: [], b: {}, c: [[], {}, ""], d: "" }],
])("what is written is what was there: %s", async (_name, value) => {
  const written = await jsonInTurns(value);
  const text = typeof written === "string" ? written : Buffer.from(written).toString();
  expect(JSON.parse(text)).toEqual(value);
});
