import { expect, test } from "vitest";
import { ErrorReason } from "./errors.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { parseJsonBody } from "./json.ts";

const of = (text: string) => fingerprintOf(parseJsonBody(new TextEncoder().encode(text)));

test("a fingerprint is that of what is meant, not of how it is written", () => {
  const one = of('{"b": [1.0, "\\u00e9"], "a": null, "a": true}');
  expect(of('{"a":true,"b":[1,"é"]}')).toBe(one);
  expect(of('{"a":true,"b":["é",1]}')).not.toBe(one);
  expect(of('{"a":true,"b":[1,"e\\u0301"]}')).not.toBe(one);
});

test.each([
  ["half a surrogate pair", '{"prompt": "\\ud83d"}'],
  ["half a pair in a name", '{"\\udc00": 1}'],
  ["a number beyond a double", '{"seed": 1e400}'],
])("%s has no canonical form: refused, not broken", (_, text) => {
  expect(() => of(text)).toThrow(expect.objectContaining({ reason: ErrorReason.INVALID_JSON }));
});
