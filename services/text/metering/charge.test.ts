import { describe, expect, test } from "vitest";
import type { ReportedUsage } from "../../upstreams/text/port.ts";
import { type EndKind, verdictOf } from "./charge.ts";
import { chargeOf, holdAmountOf } from "./pricing.ts";

const bounds = { input: 100, output: 50 };
const usage = (more: Partial<ReportedUsage> = {}): ReportedUsage => ({
  inputTokens: 20,
  cachedInputTokens: 5,
  outputTokens: 30,
  ...more,
});
const ends: EndKind[] = ["completed", "incomplete", "failed", "ended", "left", "unsent", "lost"];

describe("the table of ends", () => {
  test.each(ends)("reported usage counts, also when it ended as %s", (end) => {
    expect(verdictOf(end, usage(), bounds)).toEqual({
      kind: "reported",
      tokens: { input: 20, cachedInput: 5, output: 30 },
    });
  });
  test.each<[string, Partial<ReportedUsage>]>([
    ["negative input", { inputTokens: -1 }],
    ["negative cached", { cachedInputTokens: -1 }],
    ["negative output", { outputTokens: -1 }],
    ["no integer", { outputTokens: 1.5 }],
    ["no number", { inputTokens: Number.NaN }],
    ["endless", { outputTokens: Number.POSITIVE_INFINITY }],
    ["cached above input", { inputTokens: 4, cachedInputTokens: 5 }],
    ["input above ten times the bound", { inputTokens: 1_001 }],
    ["output above ten times the bound", { outputTokens: 501 }],
  ])("%s is not believed, at every end: we count", (_name, wrong) => {
    const disbelieved = usage(wrong);
    for (const end of ends) {
      expect(verdictOf(end, disbelieved, bounds)).toEqual({ kind: "count", disbelieved });
    }
  });
  test("an explicit 0, and up to ten times the bound, are believed", () => {
    const none = usage({ inputTokens: 0, cachedInputTokens: 0, outputTokens: 0 });
    expect(verdictOf("completed", none, bounds).kind).toBe("reported");
    const most = usage({ inputTokens: 1_000, outputTokens: 500 });
    expect(verdictOf("completed", most, bounds).kind).toBe("reported");
  });
  test.each<[EndKind, string]>([
    ["completed", "count"],
    ["incomplete", "count"],
    ["ended", "count"],
    ["left", "count"],
    ["lost", "count"],
    ["failed", "free"],
    ["unsent", "free"],
  ])("without usage, %s: %s", (end, kind) => {
    expect(verdictOf(end, undefined, bounds)).toEqual({ kind });
  });
});

describe("amounts", () => {
  const price = { input: 250_000n, cachedInput: 25_000n, output: 2_000_000n };
  test("tokens times price, divided once, rounded up; cached are part of the input", () => {
    // 15 × 0.25 + 5 × 0.025 + 30 × 2 = 63.875
    expect(chargeOf(price, { input: 20, cachedInput: 5, output: 30 }, 1_000n)).toBe(64n);
    expect(chargeOf(price, { input: 0, cachedInput: 0, output: 0 }, 1_000n)).toBe(0n);
  });
  test("never above the hold", () => {
    expect(chargeOf(price, { input: 9_999, cachedInput: 0, output: 9_999 }, 99n)).toBe(99n);
  });
  test("the hold covers every usage within the bounds, also dear cached tokens", () => {
    const odd = { ...price, cachedInput: 900_000n };
    for (const each of [price, odd]) {
      const hold = holdAmountOf(each, bounds);
      for (const cachedInput of [0, 50, 100]) {
        const tokens = { input: 100, cachedInput, output: 50 };
        expect(chargeOf(each, tokens, 10n ** 15n)).toBeLessThanOrEqual(hold);
      }
    }
  });
});
