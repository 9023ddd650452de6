import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import {
  copyInTurns,
  digestInTurns,
  hashInTurns,
  joinInTurns,
  jsonInTurns,
  readInTurns,
} from "./in-turns.ts";
import type { JsonObject } from "./json.ts";

const mib = 1024 * 1024;

test("a copy is the same bytes in a buffer of their own", async () => {
  for (const size of [0, 1, 4 * mib, 9 * mib + 1]) {
    const bytes = Buffer.alloc(size, "abc");
    const copy = await copyInTurns(bytes);
    expect(bytes.equals(copy)).toBe(true);
    expect(copy.buffer.byteLength).toBe(size);
  }
});

/** The number of turns that other work gets until `work` is done. */
async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = -1;
  let isDone = false;
  const count = () => {
    turns++;
    if (!isDone) setImmediate(count);
  };
  count();
  await work.finally(() => {
    isDone = true;
  });
  return turns;
}

test("pieces are one, and others get their turn between many small ones", async () => {
  const pieces = Array.from({ length: 400 }, (_, n) => Buffer.alloc(n % 2 ? 64 * 1024 : 1_001, n));
  const whole = Buffer.concat(pieces);
  const joined = joinInTurns(pieces);
  expect(await turnsDuring(joined)).toBeGreaterThan(1);
  expect(whole.equals(await joined)).toBe(true);
  const stream = (async function* () {
    yield* pieces;
  })();
  expect(whole.equals(await readInTurns(stream))).toBe(true);
});

test("a digest is that of all bytes", async () => {
  const bytes = Buffer.alloc(9 * mib + 1, "abc");
  const digest = createHash("sha256").update(bytes).digest("hex");
  expect(await digestInTurns(bytes)).toBe(digest);
});

test("a hash is that of the whole text, pairs of surrogates on the edge of a slice too", async () => {
  const texts = ["", "abc", `${"x".repeat(4 * mib - 1)}🦊${"y".repeat(5 * mib)}`];
  const hashes = texts.map((text) => createHash("sha256").update(text).digest("hex"));
  expect(await hashInTurns(texts)).toEqual(hashes);
});

const long = 'a"\n\\é🦊\ud83d '.repeat(60_000);

test.each<[string, JsonObject]>([
  ["small", { a: 1, b: [null, true, "x"], c: {} }],
  ["a long string", { a: long, b: [long, "x"] }],
  [
    "many values",
    { a: Array.from({ length: 20_000 }, (_, n) => ({ [`n${n}`]: [n, `${n}`, null] })) },
  ],
  ["names", Object.fromEntries(Array.from({ length: 50_000 }, (_, n) => [`"${n}`, {}]))],
  ["empty ones", { pad: long, a: [], b: {}, c: [[], {}, ""], d: "" }],
])("what is written is what was there: %s", async (_name, value) => {
  const written = await jsonInTurns(value);
  const text = typeof written === "string" ? written : Buffer.from(written).toString();
  expect(JSON.parse(text)).toEqual(value);
});

test.each<[string, JsonObject]>([
  ["in one list", { a: Array.from({ length: 290_000 }, () => 5) }],
  ["in many lists", { a: Array.from({ length: 2_048 }, () => new Array(140).fill(5)) }],
])("others get their turn between short values %s", async (_, value) => {
  const written = Promise.resolve(jsonInTurns(value));
  expect(await turnsDuring(written)).toBeGreaterThan(15);
  expect(Buffer.from(await written).toString()).toBe(JSON.stringify(value));
});
