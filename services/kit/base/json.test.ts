import { describe, expect, test } from "vitest";
import { ErrorReason } from "./errors.ts";
import { checkJsonShape, shapeFault } from "./json.ts";

const kib = 1024;
const check = (text: string) => () => checkJsonShape(Buffer.from(text));
const reason = (found: ErrorReason) => expect.objectContaining({ reason: found });

describe("a body that grows when it is parsed is refused", () => {
  test.each([
    ["brackets", "[".repeat(64 * kib)],
    ["braces", '{"a":'.repeat(64 * kib)],
    ["a level too many", `${"[".repeat(1_001)}${"]".repeat(1_001)}${" ".repeat(64 * kib)}`],
    ["a level of either kind too many", `${'{"a":['.repeat(501)}${" ".repeat(64 * kib)}`],
    ["a level too many, and nothing else", `${"[".repeat(1_001)}${"]".repeat(1_001)}`],
    ["behind a string", `{"a":"]]]","b":${"[".repeat(64 * kib)}`],
    ["behind a string that ends in backslashes", `["${"\\\\".repeat(99)}",${"[".repeat(9 * kib)}`],
    ["behind many escaped quotes", `["${'\\"'.repeat(999)}",${"[".repeat(9 * kib)}`],
  ])("for its depth: %s", (_, text) => {
    expect(check(text)).toThrow(reason(ErrorReason.INVALID_JSON));
  });

  test.each([
    ["objects", `[${"{},".repeat(500_000)}{}]`],
    ["numbers", `[${"1,".repeat(300_000)}1]`],
    ["names", `{${'"a":1,'.repeat(600_000)}"b":1}`],
    ["behind a string with its quotes escaped", `["\\"[\\\\",${"[],".repeat(600_000)}0]`],
  ])("for its values: %s", (_, text) => {
    expect(check(text)).toThrow(reason(ErrorReason.PAYLOAD_TOO_LARGE));
  });
});

describe("a body that is long for its text passes", () => {
  test.each([
    ["marks in a string", JSON.stringify({ input: '[{,:"\\'.repeat(600_000) })],
    ["a string that ends in a backslash", `["${"\\\\".repeat(64 * kib)}",[]]`],
    ["long strings that end in backslashes", `[${`"${"a".repeat(999)}\\\\\\"]]",`.repeat(200)}0]`],
    [
      "long strings that end in an escape",
      `[${`"${"a\\n".repeat(333)}${"a".repeat(300)}\\\\",`.repeat(200)}[]]`,
    ],
    ["a string without an end", `["${"[".repeat(64 * kib)}`],
    ["an escaped quote, then no end", `["${"[".repeat(64 * kib)}\\"`],
    ["depth that is left again", `[${"[[]],".repeat(50_000)}0]`],
    ["a long session", JSON.stringify(new Array(50_000).fill({ role: "user", content: "a, b" }))],
    ["no more marks than may be", `[${"1,".repeat(299_998)}1]`],
    ["the deepest of both kinds", `${'{"a":['.repeat(500)}${" ".repeat(64 * kib)}`],
    ["the deepest", `${"[".repeat(1_000)}${"]".repeat(1_000)}${" ".repeat(64 * kib)}`],
  ])("%s", (_, text) => {
    expect(check(text)).not.toThrow();
  });

  test("as part of a larger buffer", () => {
    const whole = Buffer.from(`${"[".repeat(64 * kib)}${" ".repeat(64 * kib)}`);
    expect(() => checkJsonShape(new Uint8Array(whole.subarray(64 * kib)))).not.toThrow();
    expect(() => checkJsonShape(new Uint8Array(whole.subarray(0, 64 * kib)))).toThrow();
    expect(() => checkJsonShape(whole.subarray(64 * kib))).not.toThrow();
  });

  test("one with fewer bytes than brackets of so many levels have is not looked at", () => {
    expect(check("[".repeat(2_000))).not.toThrow();
  });
});

const named = (count: number, name: (at: number) => string, rest = "") =>
  Buffer.from(`{${Array.from({ length: count }, (_, at) => `${name(at)}0`).join(",")}${rest}}`);

test.each<[string, Buffer, boolean]>([
  ["as many", named(600, (at) => `"n${at}":`), false],
  ["one more", named(601, (at) => `"n${at}":`), true],
  ["empty ones", named(601, () => '"":'), true],
  ["white space before the colon", named(601, (at) => `"n${at}" \r\n\t:`), true],
  ["names that end in backslashes", named(601, (at) => String.raw`"n${at}\\":`), true],
  ["names within a text", named(1, () => '"n":', `,"a":"${'\\"b\\":1,'.repeat(900)}"`), false],
  ["colons within a text", named(1, () => '"n":', `,"a":"${"12:34:56 ".repeat(900)}"`), false],
  ["texts", Buffer.from(`["${'a","'.repeat(2_000)}"]`), false],
])("more than 600 names: %s", (_, json, isMore) => {
  const fault = shapeFault(json, { marks: Number.POSITIVE_INFINITY, names: 600 });
  expect(fault).toBe(isMore ? "many" : undefined);
});
