import { costOf } from "#common/words/money.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** Prices of a model when a request was accepted: USD micros for a million tokens. */
export interface TextPrice {
  input: bigint;
  cachedInput: bigint;
  output: bigint;
}

/** Tokens to be charged. The cached ones are a subset of the input. */
export interface ChargedTokens {
  input: number;
  cachedInput: number;
  output: number;
}

/** The most tokens that a request can use. */
export interface TokenBounds {
  input: number;
  output: number;
}

/** The price of a model in the catalog. */
export function priceOf(spec: ChatSpec): TextPrice {
  return {
    input: spec.inputUsdMicrosPerMillionTokens,
    cachedInput: spec.cachedInputUsdMicrosPerMillionTokens,
    output: spec.outputUsdMicrosPerMillionTokens,
  };
}

/** USD micros to hold, so that no usage within the bounds is charged more. */
export function holdAmountOf(price: TextPrice, bounds: TokenBounds): bigint {
  return costOf([
    { units: BigInt(bounds.input), perMillion: dearestInput(price) },
    { units: BigInt(bounds.output), perMillion: price.output },
  ]);
}

/** The most output tokens, within the bounds, that an amount pays for beside the input. 0 where it pays for none. */
export function outputWithin(price: TextPrice, bounds: TokenBounds, amount: bigint): number {
  const left = amount * tokensPerPrice - BigInt(bounds.input) * dearestInput(price);
  if (left < 0n) return 0;
  if (price.output === 0n) return bounds.output;
  const tokens = left / price.output;
  return tokens < BigInt(bounds.output) ? Number(tokens) : bounds.output;
}

/** Prices are for this many tokens. */
const tokensPerPrice = 1_000_000n;

/** Tokens of output at which an answer is cut: the caller's bound, or the whole output of the hold. */
export function cutBoundOf(
  { maxOutputTokens }: { maxOutputTokens: number | undefined },
  held: TokenBounds,
): number {
  return Math.min(held.output, maxOutputTokens ?? held.output);
}

/** The higher price of input. A catalog may price cached tokens above fresh ones. */
function dearestInput({ input, cachedInput }: TextPrice): bigint {
  return cachedInput > input ? cachedInput : input;
}

/** USD micros to charge: at most the hold. */
export function chargeOf(price: TextPrice, tokens: ChargedTokens, holdAmount: bigint): bigint {
  const cost = costOf([
    { units: BigInt(tokens.input - tokens.cachedInput), perMillion: price.input },
    { units: BigInt(tokens.cachedInput), perMillion: price.cachedInput },
    { units: BigInt(tokens.output), perMillion: price.output },
  ]);
  return cost < holdAmount ? cost : holdAmount;
}
