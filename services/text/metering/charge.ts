import type { ReportedUsage } from "../../upstreams/text/port.ts";
import { believableFactor } from "../base/limits.ts";
import type { Charge, Closing, Intent, KeptAnswer } from "../store/store.ts";
import { type ChargedTokens, chargeOf, type TokenBounds } from "./pricing.ts";

/**
 * How a request ended.
 * - `completed`, `incomplete`: the upstream's own last word.
 * - `failed`: `response.failed`, a cut by upstream, or an upstream that never began.
 * - `ended`: by us, in its middle: at a bound or a time-out of ours, or because this process stops.
 * - `left`: the last caller closed its connection, or its deadline passed, after dispatch.
 * - `unsent`: over before it was sent upstream.
 * - `lost`: the process that ran it is gone; another one speaks for it.
 */
export type EndKind = "completed" | "incomplete" | "failed" | "ended" | "left" | "unsent" | "lost";

/**
 * What an end costs.
 * - `reported`: these tokens, which upstream counted.
 * - `count`: input and the output seen, counted by us; `disbelieved`: upstream said something that cannot be; `atLeast`: what
 *   it reported while output was still to come.
 * - `free`: nothing; the hold is released.
 */
type Verdict =
  | { kind: "reported"; tokens: ChargedTokens }
  | { kind: "count"; disbelieved?: ReportedUsage; atLeast?: ChargedTokens }
  | { kind: "free" };

type Awaitable<T> = T | Promise<T>;

/** How a request ended, and what it leaves. */
export interface End {
  kind: EndKind;
  reported?: ReportedUsage | undefined;
  /** Output that was not seen but is known of, or must be assumed, in tokens: it counts where upstream reports no usage. */
  unseenTokens?: number | undefined;
  /** Tokens of input that no part of the request shows, as `unseenTokens`: what tools brought that upstream carried out. */
  unseenInput?: number | undefined;
  /** It went past the bound of its output and was cut there, at so many tokens: without usage it costs these. */
  cutAt?: number | undefined;
  /** Tools were seen that upstream carried out: something was made, though there may be no output. */
  hasCalls?: boolean | undefined;
  /** An answer came that only we refuse, for its size: its input was read, though nothing is known of its output, or it has none. */
  hasAnswer?: boolean | undefined;
  /**
   * What is kept of the complete answer for the idempotency key: JSON, which shows what it costs (in USD micros), and what we
   * counted, where we did.
   */
  answer?:
    | ((cost: bigint, estimate: ChargedTokens | undefined) => Awaitable<KeptAnswer | undefined>)
    | undefined;
  /** Properties of the request that had no effect, which a replay of the answer names again. */
  ignored?: readonly string[] | undefined;
  /** Why it ended, in OpenAI's words. */
  finishReason?: string | undefined;
  /** Opaque state that the answer gave away, and the upstream that made it. */
  opaque?: { values: readonly string[]; upstream: string };
}

/** What an end comes to. */
export interface Decision {
  end: End;
  closing: Closing;
  /** What is charged, where we counted it ourselves: the answer shows it. */
  estimate?: ChargedTokens;
  /** What upstream reported and what cannot be true. */
  disbelieved?: ReportedUsage | undefined;
}

/** What an end comes to, by the table of docs/money.md. `count` gives input and output tokens so far. */
export async function decide(
  end: End,
  intent: Intent,
  count: () => Promise<readonly [input: number, output: number]>,
): Promise<Decision> {
  const { kind, reported, cutAt, unseenTokens = 0, unseenInput = 0 } = end;
  const { bounds, price, holdAmount } = intent;
  const settling = async (charge: Charge, estimate?: ChargedTokens): Promise<Decision> => {
    const answer = await end.answer?.(charge.amount ?? 0n, estimate);
    const { ignored = [] } = end;
    const kept = answer ? { answer, ...(ignored.length > 0 ? { ignored } : {}) } : {};
    const closing: Closing = { kind: "settling", end: kind, charge, ...kept };
    return { end, closing, ...(estimate ? { estimate } : {}) };
  };
  const verdict = verdictOf(kind, reported, bounds);
  switch (verdict.kind) {
    case "free":
      return settling(noCharge);
    case "reported": {
      const amount = chargeOf(price, verdict.tokens, holdAmount);
      const reasoning = reported ? reasoningOf(reported) : 0;
      return settling({ amount, ...verdict.tokens, reasoning, estimated: false });
    }
    case "count": {
      const [shown, seen] = await count();
      const input = shown + unseenInput;
      // Reasoning that is hidden stands beside the text that was cut, up to what is held.
      const output = Math.min(bounds.output, (cutAt ?? seen) + unseenTokens);
      // Upstream had made nothing when we ended it.
      const hasMade = output > 0 || end.hasCalls || end.hasAnswer || reported !== undefined;
      if (kind === "ended" && !hasMade) return settling(noCharge);
      const charge = estimatedCharge(intent, input, output, verdict.atLeast);
      return { ...(await settling(charge, charge)), disbelieved: verdict.disbelieved };
    }
  }
}

/** Nothing is charged, and the hold is released. */
export const noCharge: Charge = {
  amount: undefined,
  input: 0,
  cachedInput: 0,
  output: 0,
  estimated: false,
};

/**
 * A charge for tokens that we counted, no more than the bounds of the request: an upstream that keeps to them by its own
 * tokenizer can be above them by ours. `atLeast`: what upstream reported on the way.
 */
export function estimatedCharge(
  { price, holdAmount, bounds }: Pick<Intent, "price" | "holdAmount" | "bounds">,
  input: number,
  output: number,
  atLeast: ChargedTokens = noCharge,
): Charge {
  const tokens: ChargedTokens = {
    input: Math.max(Math.min(input, bounds.input), atLeast.input),
    cachedInput: atLeast.cachedInput,
    output: Math.max(Math.min(output, bounds.output), atLeast.output),
  };
  return { amount: chargeOf(price, tokens, holdAmount), ...tokens, estimated: true };
}

/** The table "What a text request costs" of docs/money.md: the first row that fits. */
export function verdictOf(
  end: EndKind,
  reported: ReportedUsage | undefined,
  bounds: TokenBounds,
): Verdict {
  if (reported) {
    if (!isBelievable(reported, bounds)) return { kind: "count", disbelieved: reported };
    const tokens = tokensOf(reported);
    // What failed costs what was reported, and nothing where that is nothing.
    const isWhole = !reported.isRunning || end === "failed" || end === "unsent";
    return isWhole ? { kind: "reported", tokens } : { kind: "count", atLeast: tokens };
  }
  switch (end) {
    case "completed":
    case "incomplete":
    case "ended":
    case "left":
    case "lost":
      return { kind: "count" };
    case "failed":
    case "unsent":
      return { kind: "free" };
  }
}

/** Reasoning that an upstream reported within its output; 0 where that cannot be. */
export function reasoningOf({ reasoningTokens = 0, outputTokens }: ReportedUsage): number {
  const isSound = Number.isSafeInteger(reasoningTokens) && reasoningTokens >= 0;
  return isSound && reasoningTokens <= outputTokens ? reasoningTokens : 0;
}

/** Whole numbers that are not negative, cached within input, and neither side above ten times its bound. */
function isBelievable(usage: ReportedUsage, bounds: TokenBounds): boolean {
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
