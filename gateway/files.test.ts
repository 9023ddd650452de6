import { describe, expect, test } from "vitest";
import { matchesNone, rangeApplies, wantedRange } from "./files.ts";

const part = (start: number, end: number) => ({ kind: "part", start, end });
const whole = { kind: "whole" };
const unsatisfiable = { kind: "unsatisfiable" };

describe("a Range of a file of 100 bytes", () => {
  test.each([
    [undefined, whole],
    ["bytes=0-0", part(0, 0)],
    ["bytes=0-99", part(0, 99)],
    ["bytes=10-19", part(10, 19)],
    ["bytes=10-", part(10, 99)],
    ["bytes=99-", part(99, 99)],
    ["bytes=90-1000", part(90, 99)],
    ["bytes=90-99999999999999999999999", part(90, 99)],
    ["BYTES= 5-6 ", part(5, 6)],
    ["bytes=-1", part(99, 99)],
    ["bytes=-100", part(0, 99)],
    ["bytes=-5000", part(0, 99)],
    ["bytes=-0", unsatisfiable],
    ["bytes=100-", unsatisfiable],
    ["bytes=100-200", unsatisfiable],
    ["bytes=5-4", whole],
    ["bytes=-", whole],
    ["bytes=", whole],
    ["bytes=a-b", whole],
    ["bytes=0-1,5-6", whole],
    ["items=0-1", whole],
    ["0-1", whole],
    ["bytes=1-2-3", whole],
  ])("%j", (header, want) => {
    expect(wantedRange(header, 100)).toEqual(want);
  });

  test("an empty file has no range", () => {
    expect(wantedRange("bytes=0-", 0)).toEqual(unsatisfiable);
    expect(wantedRange("bytes=-5", 0)).toEqual(unsatisfiable);
    expect(wantedRange(undefined, 0)).toEqual(whole);
  });
});

describe("validators", () => {
  test.each([
    [undefined, false],
    ["*", true],
    ['"abc"', true],
    ['W/"abc"', true],
    ['"x", "abc"', true],
    ['"x"', false],
    ["abc", false],
  ])("If-None-Match %j", (header, want) => {
    expect(matchesNone(header, '"abc"')).toBe(want);
  });

  test.each([
    [undefined, true],
    ['"abc"', true],
    ['W/"abc"', false],
    ['"x"', false],
    ["Wed, 21 Oct 2015 07:28:00 GMT", false],
  ])("If-Range %j", (header, want) => {
    expect(rangeApplies(header, '"abc"')).toBe(want);
  });
});
