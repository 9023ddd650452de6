import { expect, test } from "vitest";
import { OutputGate } from "./output-gate.ts";

/** A gate at a bound of tokens, where a token is one byte. */
function gateAt(tokens: number) {
  const count = async (texts: readonly string[]) => Buffer.byteLength(texts.join(""));
  return new OutputGate({ tokens, count }, true);
}

test("a count is due exactly when bytes that passed could be past the bound, in deltas of any size", () => {
  for (const tokens of [1, 100, 2_000, 5_000]) {
    for (const size of [1, 7, 400, 3_000]) {
      const gate = gateAt(tokens);
      for (let bytes = 0; bytes < tokens + 3_000; bytes += size) {
        expect(gate.mustCount(), `${bytes} bytes of ${tokens}`).toBe(!gate.admits());
        gate.saw("x".repeat(size));
      }
      expect(gate.mustCount()).toBe(true);
    }
  }
});

test("it is due anew behind a count, and where the upstream may have made more", async () => {
  const gate = gateAt(5_000);
  gate.saw("x".repeat(10));
  expect(gate.mustCount()).toBe(false);
  gate.saw("x".repeat(4_900));
  expect(gate.mustCount()).toBe(false);
  // The tokens of all this are known, and few are left.
  expect(await gate.count()).toBe("within");
  gate.saw("x".repeat(110));
  expect([gate.mustCount(), gate.admits()]).toEqual([true, false]);
  gate.lenient();
  expect([gate.mustCount(), gate.admits()]).toEqual([false, true]);
});

test("64 KiB are counted at the latest, however far the bound is", () => {
  const gate = gateAt(1_000_000);
  let bytes = 0;
  for (; !gate.mustCount(); bytes += 100) gate.saw("x".repeat(100));
  expect(bytes).toBeGreaterThan(64 * 1024);
  expect(bytes).toBeLessThanOrEqual(64 * 1024 + 100);
});
