import { expect, test } from "vitest";
import { readBody } from "./read.ts";

const of = (text: string) => readBody(Buffer.from(text), { fingerprint: {} }).fingerprint;

test.each([
  ['{"seed": 9007199254740993}', '{"seed": 9007199254740992}'],
  ['{"seed": 12345678901234567890}', '{"seed": 12345678901234567891}'],
  ['{"a": [{"b": 0.10000000000000000001}]}', '{"a": [{"b": 0.1}]}'],
  ['{"seed": 1e-400}', '{"seed": 0}'],
])("numbers that a double rounds to the same are different: %s %s", (one, other) => {
  expect(of(one)).not.toBe(of(other));
  expect(of(one)).toBe(of(one.replaceAll(" ", "")));
});

test.each([
  ['{"seed": 1.0}', '{"seed": 1}'],
  ['{"seed": 10000000000000000000000}', '{"seed": 1e22}'],
  ['{"seed": 9007199254740993.0}', '{"seed": 9007199254740993}'],
  ['{"b": 1, "a": 9007199254740993}', '{"a": 9007199254740993, "b": 1}'],
  ['{"t": 0.30000000000000004}', '{"t": 3.0000000000000004e-1}'],
])("spellings of one number are the same: %s %s", (one, other) => {
  expect(of(one)).toBe(of(other));
});

test("digits in a text are no number", () => {
  expect(of('{"a": "9007199254740993"}')).not.toBe(of('{"a": "9007199254740992"}'));
  expect(of('{"a": "12345678901234567890", "b": 1}')).toBe(
    of('{"b": 1.0, "a": "12345678901234567890"}'),
  );
});

/** More numbers than are checked one by one. */
const many = (last: string, space = "") =>
  `{"a":[${Array.from({ length: 140_000 }, (_, at) => `${space}1.0000000000000000${at}`).join(",")},${last}]}`;

test("many numbers are told apart by how they are spelled, and cost little more than others", () => {
  const one = many("9007199254740993");
  expect(of(one)).not.toBe(of(many("9007199254740992")));
  expect(of(one)).toBe(of(many("9007199254740993", " ")));
  const plain = one.replace(/[.0-9]{16,}/g, "1.5");
  expect(costBeside(one, plain)).toBeLessThan(5);
});

test("a number of 8 MiB is read", () => {
  const digits = "9".repeat(8 * 1024 * 1024);
  expect(of(`{"a":1.${digits}}`)).not.toBe(of(`{"a":1.${digits}8}`));
});

/** 126 KB of numbers with this many characters each. */
const longNumbers = (characters: number, digit: string) => {
  const number = `0.1${digit.repeat(characters - 4)}1`;
  return `{"a":[${new Array(Math.floor(126_000 / characters)).fill(number).join(",")}]}`;
};

test.each(["0", "5"])("long numbers cost no more than short ones: of the digit %s", (digit) => {
  // A pattern that reads a run once for each of its characters takes 20 to 100 times as much.
  expect(costBeside(longNumbers(999, digit), longNumbers(30, digit))).toBeLessThan(3);
});

test("zeros within and behind a number are told apart", () => {
  const [zeros, few] = ["0".repeat(400), "0".repeat(20)];
  expect(of(`{"a":1.${zeros}1${zeros}}`)).toBe(of(`{"a":1.${zeros}1}`));
  expect(of(`{"a":1.${zeros}1}`)).not.toBe(of(`{"a":1.${zeros}01}`));
  expect(of(`{"a":1${few}.0}`)).toBe(of(`{"a":1${few}}`));
  expect(of(`{"a":1${few}}`)).not.toBe(of(`{"a":1${few}0}`));
});

test.each([
  ["a number of 1,000 characters", `0.${"1".repeat(998)}`, true],
  ["a number of 999 characters", `0.${"1".repeat(997)}`, false],
  ["digits of two numbers", `${"1".repeat(600)}e-700,${"1".repeat(600)}e-700`, false],
])("%s: too long to be read as a number: %s", (_, number, isEndless) => {
  // A number that is too long is told apart by its spelling.
  const spelled = of(`{"a":[${number},1.0000000000000000]}`);
  expect(spelled !== of(`{"a":[${number},1.00000000000000000]}`)).toBe(isEndless);
});

function cpuMs(text: string): number {
  const before = process.threadCpuUsage();
  of(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

/**
 * How many times the processor's time of another text one takes. A machine that others use too is sometimes fast, sometimes slow. So
 * both are measured in turns, and the least of three ratios counts.
 */
function costBeside(text: string, other: string): number {
  return Math.min(...[1, 2, 3].map(() => cpuMs(text) / cpuMs(other)));
}
