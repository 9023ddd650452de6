import { costOf } from "#kit/money.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** Prices of a model when a request was accepted: USD micros for a million tokens. */
export interface TextPrice {
  input: bigint;
  cachedInput: bigint;
  output: bigint;
}

/** Tokens to be charged; the cached ones are a subset of the input. */
export interface ChargedTokens {
  input: number;
  cachedInput: number;
  output: number;
}

/** Most tokens that a request can use. */
export interface TokenBounds {
  input: number;
  output: number;
}

/** The price in force. */
export function priceOf(spec: ChatSpec): TextPrice {
  return {
    input: spec.inputUsdMicrosPerMillionTokens,
    cachedInput: spec.cachedInputUsdMicrosPerMillionTokens,
    output: spec.outputUsdMicrosPerMillionTokens,
  };
}

/** USD micros to hold, so that no usage within the bounds costs more. */
export function holdAmountOf(price: TextPrice, bounds: TokenBounds): bigint {
  // A catalog may price cached tokens above fresh ones; whichever is dearer bounds both.
  let dearer = price.input;
  if (price.cachedInput > dearer) dearer = price.cachedInput;
  return costOf([
    { units: BigInt(bounds.input), perMillion: dearer },
    { units: BigInt(bounds.output), perMillion: price.output },
  ]);
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
