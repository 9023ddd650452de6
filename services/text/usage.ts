import { believableFactor } from "./limits.ts";
import type { ChargedTokens, TokenBounds } from "./pricing.ts";
import type { ReportedUsage } from "./upstream/port.ts";

/**
 * How a request ended.
 * - `completed`, `incomplete`: the upstream's own last word.
 * - `failed`: `response.failed`, a cut, an upstream that never began, or a process that had to stop.
 * - `left`: the last caller closed its connection, or its deadline passed, after dispatch.
 * - `unsent`: over before it was sent upstream.
 * - `lost`: the process that ran it is gone; another one speaks for it.
 */
export type EndKind = "completed" | "incomplete" | "failed" | "left" | "unsent" | "lost";

/**
 * What an end costs.
 * - `reported`: these tokens, which upstream counted.
 * - `count`: input and the output seen, counted by us; `disbelieved`: upstream said something that cannot be.
 * - `free`: nothing; the hold is released.
 */
export type Verdict =
  | { kind: "reported"; tokens: ChargedTokens }
  | { kind: "count"; disbelieved?: ReportedUsage }
  | { kind: "free" };

/** The table "What a text request costs" of docs/money.md: the first row that fits. */
export function verdictOf(
  end: EndKind,
  reported: ReportedUsage | undefined,
  bounds: TokenBounds,
): Verdict {
  if (reported) {
    return isBelievable(reported, bounds)
      ? { kind: "reported", tokens: tokensOf(reported) }
      : { kind: "count", disbelieved: reported };
  }
  switch (end) {
    case "completed":
    case "incomplete":
    case "left":
    case "lost":
      return { kind: "count" };
    case "failed":
    case "unsent":
      return { kind: "free" };
  }
}

/** Whole numbers that are not negative, cached within input, and neither side above ten times its bound. */
export function isBelievable(usage: ReportedUsage, bounds: TokenBounds): boolean {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  const counts = [inputTokens, cachedInputTokens, outputTokens];
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0)) return false;
  if (cachedInputTokens > inputTokens) return false;
  return (
    inputTokens <= bounds.input * believableFactor &&
    outputTokens <= bounds.output * believableFactor
  );
}

function tokensOf(usage: ReportedUsage): ChargedTokens {
  return {
    input: usage.inputTokens,
    cachedInput: usage.cachedInputTokens,
    output: usage.outputTokens,
  };
}
