import { expect, test } from "vitest";
import { fingerprintOf } from "./fingerprint.ts";
import { holdsHalf, withEscapedHalves, withoutHalves } from "./half-characters.ts";
import { mayHoldHalf, parseJsonBody } from "./json.ts";
import { parseSettings } from "./settings-body.ts";

const parsed = (text: string) => parseJsonBody(Buffer.from(text));

test.each([
  ["of a field", '{"a":"\\ud83d"}', { a: "\ufffd" }],
  [
    "deep within",
    '{"a":[0,{"b":["\\ud83d\\ude00","x\\uDE00"]}]}',
    { a: [0, { b: ["😀", "x\ufffd"] }] },
  ],
  ["a name", '{"a":{"b":[{"\\udc00":0}]}}', { a: { b: [{ "\ufffd": 0 }] } }],
  [
    "a name that objects have anyway",
    '{"__proto__":"\\ud83d"}',
    JSON.parse('{"__proto__":"\ufffd"}'),
  ],
])("half a character becomes U+FFFD: %s", (_, text, well) => {
  const body = Buffer.from(text);
  expect(mayHoldHalf(body) && holdsHalf(parsed(text))).toBe(true);
  expect(withoutHalves(parsed(text))).toEqual(well);
  expect(parseSettings(body)).toEqual(well);
});

test.each([
  ["whole pairs", '{"a":"\\ud83d\\ude00"}'],
  ["an escaped backslash", '{"a":"\\\\ud83d"}'],
  ["none", '{"a":[null,1,true,"é"]}'],
])("a body without is left alone: %s", (_, text) => {
  expect(mayHoldHalf(Buffer.from(text)) && holdsHalf(parsed(text))).toBe(false);
});

test("each half has a fingerprint of its own", () => {
  const texts = ["\\ud83d", "\\ud83e", "\\ufffd", "\\\\ud83d"];
  const bodies = texts.flatMap((half) => [`{"a":"${half}"}`, `{"${half}":"a"}`]);
  const prints = bodies.map((text) => fingerprintOf(withEscapedHalves(parsed(text))));
  expect(new Set(prints).size).toBe(bodies.length);
});
