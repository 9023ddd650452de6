import { expect, test } from "vitest";
import { exactObject } from "./exact-json.ts";

test.each([
  '{"a":1.0,"b":-0,"c":1e3,"d":12345678901234567890,"e":0.1,"f":[1.50,{"g":2E-7}]}',
  '{"a":1,"b":"1.0"}',
  "{}",
])("%s is written again as it was", (text) => {
  expect(JSON.stringify(exactObject(text))).toBe(text);
});

test.each([
  "",
  "1.0",
  "[1.0]",
  "null",
  "{",
  '{"a":01}',
  `{"a":${"[".repeat(5_000)}${"]".repeat(5_000)}}`,
])("%s is no object", (text) => {
  expect(exactObject(text)).toBeUndefined();
});
