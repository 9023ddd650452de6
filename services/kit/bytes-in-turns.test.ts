import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { copyInTurns, hashInTurns } from "./bytes-in-turns.ts";

const mib = 1024 * 1024;

test("a copy is the same bytes in a buffer of their own", async () => {
  for (const size of [0, 1, 4 * mib, 9 * mib + 1]) {
    const bytes = Buffer.alloc(size, "abc");
    const copy = await copyInTurns(bytes);
    expect(bytes.equals(copy)).toBe(true);
    expect(copy.buffer.byteLength).toBe(size);
  }
});

test("a hash is that of the whole text, pairs of surrogates on the edge of a slice too", async () => {
  const texts = ["", "abc", `${"x".repeat(4 * mib - 1)}🦊${"y".repeat(5 * mib)}`];
  const hashes = texts.map((text) => createHash("sha256").update(text).digest("hex"));
  expect(await hashInTurns(texts)).toEqual(hashes);
});
