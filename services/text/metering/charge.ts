// Decides what an ended request is charged, by the table in docs/money.md. It computes only, so that every end can be tested
// without a store or a ledger.

import type { RequestFailure } from "#common/agreements/hold-client.ts";
import { type Awaitable, after } from "#kit/base/awaitable.ts";
import type { ReportedUsage } from "../../upstreams/text/port.ts";
import { believableFactor } from "../base/limits.ts";
import type { Charge, Closing, Intent, KeptAnswer } from "../store/store.ts";
import { chargeNotes } from "./charge-notes.ts";
import { type ChargedTokens, chargeOf, type TextPrice, type TokenBounds } from "./pricing.ts";
import { callsMade, classesOf } from "./reported-classes.ts";

/**
 * How a request ended.
 * - `completed`, `incomplete`: as the upstream reported it.
 * - `failed`: `response.failed`, a cut by the upstream, or an upstream that never began.
 * - `ended`: genmesh ended it in its middle, at a bound, at a time-out, or because this process stops.
 * - `left`: after dispatch the last caller closed its connection, or its deadline passed.
 * - `unsent`: over before it was sent to the upstream.
 * - `lost`: the process that ran it is gone, and another process ends it.
 */
export type EndKind = "completed" | "incomplete" | "failed" | "ended" | "left" | "unsent" | "lost";

/**
 * The charge for an end.
 * - `reported`: these tokens, which the upstream counted.
 * - `count`: input and the output so far, as genmesh counted them. `disbelieved`: a report of the upstream's that cannot be true.
 *   `atLeast`: a report that came while output was still to come.
 * - `free`: nothing is charged, and the hold is released.
 */
type Verdict =
  | { kind: "reported"; tokens: ChargedTokens }
  | { kind: "count"; disbelieved?: ReportedUsage; atLeast?: ChargedTokens }
  | { kind: "free" };

/** How a request ended, and the facts that decide its charge and its record. */
export interface End {
  kind: EndKind;
  reported?: ReportedUsage | undefined;
  /** Tokens of hidden output that is known of or must be assumed. They count where the upstream reports no usage. */
  unseenTokens?: number | undefined;
  /** Tokens of input from tools that the upstream carried out. No part of the request shows them. They count like `unseenTokens`. */
  unseenInput?: number | undefined;
  /** The answer went past the bound of its output and was cut at this many tokens. Without usage these are charged. */
  cutAt?: number | undefined;
  /** The upstream carried out tools. So there was work, though there may be no output. */
  hasCalls?: boolean | undefined;
  /** Calls of these tools that were seen, by their family. */
  toolCalls?: ChargedTokens["toolCalls"] | undefined;
  /** An answer came that genmesh refuses for its size. Its input was read, and its output is unknown or empty. */
  hasAnswer?: boolean | undefined;
  /**
   * Makes the complete answer that is kept for the idempotency key. It is JSON that shows its cost (in USD micros), and the tokens that
   * genmesh counted, if it did.
   */
  answer?:
    | ((cost: bigint, estimate: ChargedTokens | undefined) => Awaitable<KeptAnswer | undefined>)
    | undefined;
  /** Properties of the request that had no effect. A replay of the answer names them again. */
  ignored?: readonly string[] | undefined;
  /** The reason for the end, in OpenAI's words. */
  finishReason?: string | undefined;
  /** The reason why it failed. */
  failure?: RequestFailure | undefined;
  /** Opaque state in the answer, and the upstream that made it. */
  opaque?: { values: readonly string[]; upstream: string };
}

/** The result of an end. */
export interface Decision {
  end: End;
  closing: Closing;
  /** The charged tokens, where genmesh counted them itself. The answer shows them. */
  estimate?: ChargedTokens;
  /** A report of the upstream's that cannot be true. */
  disbelieved?: ReportedUsage | undefined;
}

/** The result of an end, by the table of docs/money.md. `count` answers input and output tokens so far. */
export function decide(
  end: End,
  intent: Intent,
  count: () => Promise<readonly [input: number, output: number]>,
): Awaitable<Decision> {
  const { kind, reported } = end;
  const { bounds, price, holdAmount } = intent;
  const verdict = verdictOf(kind, reported, bounds, price);
  const calls = callsOf(end);
  switch (verdict.kind) {
    case "free":
      return settled(end, noCharge);
    case "reported": {
      const tokens = calls ? { ...verdict.tokens, ...calls } : verdict.tokens;
      const amount = chargeOf(price, tokens, holdAmount);
      const reasoning = reported ? reasoningOf(reported) : 0;
      const notes = notesOf(price, tokens, reported);
      return settled(end, { amount, ...tokens, ...notes, reasoning, estimated: false });
    }
    case "count":
      return decideByCount(end, intent, verdict, count);
  }
}

async function decideByCount(
  end: End,
  intent: Intent,
  { atLeast, disbelieved }: Extract<Verdict, { kind: "count" }>,
  count: () => Promise<readonly [input: number, output: number]>,
): Promise<Decision> {
  const { kind, reported, cutAt, unseenTokens = 0, unseenInput = 0 } = end;
  const [shown, seen] = await count();
  const input = shown + unseenInput;
  // Hidden reasoning is added to the text up to the cut, within the hold.
  const output = Math.min(intent.bounds.output, (cutAt ?? seen) + unseenTokens);
  // The upstream had generated nothing when genmesh ended the request.
  const hasMade = output > 0 || end.hasCalls || end.hasAnswer || reported !== undefined;
  if (kind === "ended" && !hasMade) return settled(end, noCharge);
  const counted = estimatedCharge(intent, input, output, { ...atLeast, ...callsOf(end) });
  const charge = { ...counted, ...notesOf(intent.price, counted, reported) };
  return { ...(await settled(end, charge, charge)), disbelieved };
}

/** The calls of the upstream's tools, where an answer or its usage tells of some. */
function callsOf({ reported, toolCalls }: End) {
  const details = reported?.details;
  return toolCalls || details ? callsMade(toolCalls, details) : undefined;
}

/** Notes on a charge, where parts of a usage may have prices of their own. */
function notesOf(price: TextPrice, tokens: ChargedTokens, reported: ReportedUsage | undefined) {
  const details = reported?.details;
  const isNoted = details || price.list || price.upstreamCost;
  return isNoted ? chargeNotes(price, tokens, details) : undefined;
}

/** The decision for a charge. It waits for an answer that is kept. */
function settled(end: End, charge: Charge, estimate?: ChargedTokens): Awaitable<Decision> {
  const closing: Closing = { kind: "settling", end: end.kind, charge };
  const decision: Decision = { end, closing, ...(estimate ? { estimate } : {}) };
  if (!end.answer) return decision;
  return after(end.answer(charge.amount ?? 0n, estimate), (answer) => {
    if (!answer) return decision;
    const { ignored = [] } = end;
    return {
      ...decision,
      closing: { ...closing, answer, ...(ignored.length > 0 ? { ignored } : {}) },
    };
  });
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
 * A charge for tokens that genmesh counted, within the bounds of the request. An upstream that keeps to them by its own tokenizer can
 * be above them by this count. `atLeast`: the upstream's report from the middle of the answer.
 */
export function estimatedCharge(
  { price, holdAmount, bounds }: Pick<Intent, "price" | "holdAmount" | "bounds">,
  input: number,
  output: number,
  atLeast: Partial<ChargedTokens> = {},
): Charge {
  const { countedAudio: audioInput, countedImages: imageInput } = bounds;
  const tokens: ChargedTokens = {
    ...(audioInput !== undefined && { audioInput }),
    ...(imageInput !== undefined && { imageInput }),
    ...atLeast,
    input: Math.max(Math.min(input, bounds.input), atLeast.input ?? 0),
    cachedInput: atLeast.cachedInput ?? 0,
    output: Math.max(Math.min(output, bounds.output), atLeast.output ?? 0),
  };
  return { amount: chargeOf(price, tokens, holdAmount), ...tokens, estimated: true };
}

/** The first row that fits in the table "What a text request costs" of docs/money.md. */
export function verdictOf(
  end: EndKind,
  reported: ReportedUsage | undefined,
  bounds: TokenBounds,
  price: Pick<TextPrice, "list" | "asksLongCache"> = {},
): Verdict {
  if (reported) {
    const { details } = reported;
    const classes = details && classesOf(reported, details, price.asksLongCache === true);
    // Where no class has a price of its own, its number changes nothing.
    const isOdd = details !== undefined && price.list !== undefined && !classes;
    if (isOdd || !isBelievable(reported, bounds)) return { kind: "count", disbelieved: reported };
    const tokens = classes ? { ...tokensOf(reported), ...classes } : tokensOf(reported);
    // A failed request is charged as reported, and nothing where the report is zero.
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

/** Reasoning that an upstream reported within its output. 0 where the number cannot be true. */
export function reasoningOf({ reasoningTokens = 0, outputTokens }: ReportedUsage): number {
  const isSound = Number.isSafeInteger(reasoningTokens) && reasoningTokens >= 0;
  return isSound && reasoningTokens <= outputTokens ? reasoningTokens : 0;
}

/**
 * Are they whole numbers that are not negative, with the cached tokens within the input, and neither side above ten times its bound?
 */
function isBelievable(usage: ReportedUsage, bounds: TokenBounds): boolean {
  const { inputTokens, cachedInputTokens, outputTokens } = usage;
  if (!Number.isSafeInteger(inputTokens) || !Number.isSafeInteger(outputTokens)) return false;
  if (!Number.isSafeInteger(cachedInputTokens) || cachedInputTokens < 0) return false;
  if (cachedInputTokens > inputTokens || outputTokens < 0) return false;
  return (
    inputTokens <= bounds.input * believableFactor &&
    // A stream of no output may count its first token nevertheless.
    outputTokens <= Math.max(bounds.output, 1) * believableFactor
  );
}

function tokensOf(usage: ReportedUsage): ChargedTokens {
  return {
    input: usage.inputTokens,
    cachedInput: usage.cachedInputTokens,
    output: usage.outputTokens,
  };
}
