// Computes the hold and the charge of every request of text. The rules for models with more than three prices are in
// `price-list.ts`.

import { costOf } from "#common/words/money.ts";
import type {
  ChatSpec,
  EmbeddingSpec,
  TranscriptionSpec,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { priceListOf } from "./catalog-prices.ts";
import {
  type HeldContent,
  listedCost,
  listedHold,
  listedOutput,
  type PriceList,
} from "./price-list.ts";

/** Prices of a model when a request was accepted: USD micros for a million tokens. */
export interface TextPrice {
  input: bigint;
  cachedInput: bigint;
  output: bigint;
  /** All prices, where there are more than these three. Then these alone decide. */
  list?: PriceList;
  /** The caller asked for long entries in the cache. Written tokens that are reported without their time are such entries then. */
  asksLongCache?: true;
  /** The operator's own prices at the upstream. They are never held and never charged. */
  upstreamCost?: PriceList;
}

/** Tokens to be charged. An absent class has none. */
export interface ChargedTokens {
  /** All input. The other kinds of input are subsets of it. */
  input: number;
  cachedInput: number;
  /** All output. */
  output: number;
  cacheWrite?: number;
  cacheWriteLong?: number;
  /** With the cached audio. */
  audioInput?: number;
  imageInput?: number;
  cachedAudioInput?: number;
  audioOutput?: number;
  imageOutput?: number;
  /** Calls of tools that the upstream carried out, by the family of the tool. */
  toolCalls?: Readonly<Record<string, number>>;
  /** The service tier that the answer names. */
  servedTier?: string;
}

/** The most tokens that a request can use. */
export interface TokenBounds {
  input: number;
  output: number;
  /** The tokens of audio and of images in an input that genmesh counts, where they have prices of their own. Absent: none. */
  countedAudio?: number;
  countedImages?: number;
}

/** The price of a model in the catalog. */
export function priceOf(spec: ChatSpec): TextPrice {
  return {
    input: spec.inputUsdMicrosPerMillionTokens,
    cachedInput: spec.cachedInputUsdMicrosPerMillionTokens,
    output: spec.outputUsdMicrosPerMillionTokens,
    ...(spec.prices && { list: priceListOf(spec.prices) }),
    ...(spec.upstreamCost && { upstreamCost: priceListOf(spec.upstreamCost) }),
  };
}

/** The price of an embedding model, which has no output. */
export function priceOfEmbedding(spec: EmbeddingSpec): TextPrice {
  const { inputUsdMicrosPerMillionTokens: perMillion } = spec;
  return { input: perMillion, cachedInput: perMillion, output: 0n };
}

/** The price of a transcription model, whose input is counted in thousandths of a minute. */
export function priceOfTranscription({ usdMicrosPerMinute }: TranscriptionSpec): TextPrice {
  const perMillion = usdMicrosPerMinute * 1_000n;
  return { input: perMillion, cachedInput: perMillion, output: 0n };
}

/** USD micros to hold, so that no usage within the bounds is charged more. */
export function holdAmountOf(price: TextPrice, bounds: TokenBounds, held?: HeldContent): bigint {
  const { list, asksLongCache = false } = price;
  if (list) return listedHold(list, { ...bounds, ...held }, asksLongCache);
  return costOf([
    { units: BigInt(bounds.input), perMillion: dearestInput(price) },
    { units: BigInt(bounds.output), perMillion: price.output },
  ]);
}

/** The most output tokens, within the bounds, that an amount pays for beside the input. 0 where it pays for none. */
export function outputWithin(
  price: TextPrice,
  bounds: TokenBounds,
  amount: bigint,
  held?: HeldContent,
): number {
  const { list, asksLongCache = false } = price;
  if (list) return listedOutput(list, { ...bounds, ...held }, amount, asksLongCache);
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
  const cost = price.list
    ? listedCost(price.list, tokens)
    : costOf([
        { units: BigInt(tokens.input - tokens.cachedInput), perMillion: price.input },
        { units: BigInt(tokens.cachedInput), perMillion: price.cachedInput },
        { units: BigInt(tokens.output), perMillion: price.output },
      ]);
  return cost < holdAmount ? cost : holdAmount;
}
