// Prices with classes of tokens, rows for long inputs, tiers and calls of tools. `pricing.ts` uses it for models with more than
// three prices.

import { costOf, type PricedUnits } from "#common/words/money.ts";
import type { ChargedTokens, TokenBounds } from "./pricing.ts";

/** Prices of the classes of tokens: USD micros for a million. An absent price is that of another class. */
export interface TokenPrices {
  input: bigint;
  /** Absent: `input`. */
  cachedInput?: bigint;
  output: bigint;
  /** Absent: `input`. */
  cacheWrite?: bigint;
  /** Absent: `cacheWrite`. */
  cacheWriteLong?: bigint;
  /** Absent: `input`. */
  audioInput?: bigint;
  /** Absent: `input`. */
  imageInput?: bigint;
  /** Absent: `cachedInput`. */
  cachedAudioInput?: bigint;
  /** Absent: `output`. */
  audioOutput?: bigint;
  /** Absent: `output`. */
  imageOutput?: bigint;
}

/** Prices of an input of more tokens than a bound. */
export interface LongInputPrices extends TokenPrices {
  aboveInputTokens: bigint;
}

/** All prices of a model that has more than three. */
export interface PriceList extends TokenPrices {
  /** Ascending. The last row whose bound the input exceeds applies to the whole request. */
  longInput?: readonly LongInputPrices[];
  /** Percent of all token prices, by the tier that the answer names. A missing tier is 100. */
  servedTiers?: Readonly<Record<string, bigint>>;
  /** USD micros for a call, by the family of the tool. A missing tool is free. */
  toolCalls?: Readonly<Record<string, bigint>>;
}

/** The parts of a request that may have prices of their own. Absent: nothing of that kind. */
export interface HeldContent {
  /** The most tokens of audio and of images in its input. */
  audioInput?: number;
  imageInput?: number;
  /** True where it asks for audio or images as output. */
  audioOutput?: boolean;
  imageOutput?: boolean;
  /** The most calls of tools, by their family. */
  toolCalls?: Readonly<Record<string, number>>;
}

/** The most that a request can use. */
export type HoldBounds = TokenBounds & HeldContent;

/** USD micros that the tokens and calls cost by the list: one sum, rounded up once. */
export function listedCost(list: PriceList, tokens: ChargedTokens): bigint {
  const row = rowFor(list, tokens.input);
  const percent = ownOf(list.servedTiers, tokens.servedTier) ?? whole;
  return costOf([
    ...inPercent(classesOf(row, tokens), percent),
    ...callsOf(list, tokens.toolCalls),
  ]);
}

/** USD micros to hold: the dearest way in which a request can stay within its bounds. */
export function listedHold(list: PriceList, bounds: HoldBounds, asksLongCache: boolean): bigint {
  const percent = highestPercent(list);
  const calls = callsOf(list, bounds.toolCalls);
  const amounts = rowsReached(list, bounds.input).map((row) => {
    const output = { units: BigInt(bounds.output), perMillion: dearestOutput(row, bounds) };
    const parts = [...dearestInput(row, bounds, asksLongCache), output];
    return costOf([...inPercent(parts, percent), ...calls]);
  });
  return amounts.reduce((most, amount) => (amount > most ? amount : most));
}

/** The most output tokens, within the bounds, for which {@link listedHold} is at most the amount. 0 where it is for none. */
export function listedOutput(
  list: PriceList,
  bounds: HoldBounds,
  amount: bigint,
  asksLongCache: boolean,
): number {
  const percent = highestPercent(list);
  const calls = sumOf(callsOf(list, bounds.toolCalls));
  const tokens = rowsReached(list, bounds.input).map((row) => {
    const input = sumOf(inPercent(dearestInput(row, bounds, asksLongCache), percent));
    const left = amount * million - calls - input;
    const each = (dearestOutput(row, bounds) * percent) / whole;
    if (left < 0n) return 0n;
    return each === 0n ? BigInt(bounds.output) : left / each;
  });
  const least = tokens.reduce((fewest, count) => (count < fewest ? count : fewest));
  return least < BigInt(bounds.output) ? Number(least) : bounds.output;
}

/** The bound of the row that prices a request of this input. 0: the base. */
export function rowBoundOf(list: PriceList | undefined, input: number): number {
  const row = list && rowFor(list, input);
  return row && "aboveInputTokens" in row ? Number(row.aboveInputTokens) : 0;
}

/** Prices are for this many tokens. */
const million = 1_000_000n;
/** Percent of a price that applies in full. */
const whole = 100n;

type PriceRow = TokenPrices | LongInputPrices;

/** The rows that may price a request of at most this input. A hold covers each of them. */
function rowsReached(list: PriceList, input: number): PriceRow[] {
  const { longInput = [] } = list;
  return [list, ...longInput.filter(({ aboveInputTokens }) => BigInt(input) > aboveInputTokens)];
}

function rowFor(list: PriceList, input: number): PriceRow {
  return list.longInput ? (rowsReached(list, input).at(-1) ?? list) : list;
}

/** The tokens by class, each with its price. No token is in two of them. */
function classesOf(row: TokenPrices, tokens: ChargedTokens): PricedUnits[] {
  const { input, output, cachedInput: cached, cacheWrite = 0, cacheWriteLong = 0 } = tokens;
  const price = pricesOf(row);
  let fresh = input - cached - cacheWrite - cacheWriteLong;
  const fitting = (wanted: number | undefined, room: number) => Math.min(wanted ?? 0, room);
  const cachedAudio = fitting(tokens.cachedAudioInput, cached);
  // The rest of what was reported as audio or images does not fit, and counts as text.
  const audio = fitting(Math.max(0, (tokens.audioInput ?? 0) - cachedAudio), fresh);
  const image = fitting(tokens.imageInput, fresh - audio);
  fresh -= audio + image;
  const audioOutput = fitting(tokens.audioOutput, output);
  const imageOutput = fitting(tokens.imageOutput, output - audioOutput);
  return [
    part(fresh, row.input),
    part(cached - cachedAudio, price.cachedInput),
    part(cachedAudio, price.cachedAudioInput),
    part(cacheWrite, price.cacheWrite),
    part(cacheWriteLong, price.cacheWriteLong),
    part(audio, price.audioInput),
    part(image, price.imageInput),
    part(output - audioOutput - imageOutput, row.output),
    part(audioOutput, price.audioOutput),
    part(imageOutput, price.imageOutput),
  ];
}

/** A row with the prices that it leaves to other classes. */
function pricesOf(row: TokenPrices): Required<TokenPrices> {
  const { input, output, cachedInput = input, cacheWrite = input } = row;
  const { cacheWriteLong = cacheWrite, audioInput = input, imageInput = input } = row;
  const { cachedAudioInput = cachedInput, audioOutput = output, imageOutput = output } = row;
  const ofInput = { input, cachedInput, cacheWrite, cacheWriteLong, audioInput, imageInput };
  return { ...ofInput, output, cachedAudioInput, audioOutput, imageOutput };
}

/** The input at its dearest: all of it could be read from a cache, or be written to one. */
function dearestInput(
  row: TokenPrices,
  { input, audioInput = 0, imageInput = 0 }: HoldBounds,
  asksLongCache: boolean,
): PricedUnits[] {
  const price = pricesOf(row);
  const long = asksLongCache ? price.cacheWriteLong : 0n;
  const text = dearest(price.input, price.cachedInput, price.cacheWrite, long);
  const audio = Math.min(audioInput, input);
  const image = Math.min(imageInput, input - audio);
  return [
    part(input - audio - image, text),
    part(audio, dearest(text, price.audioInput, price.cachedAudioInput)),
    part(image, dearest(text, price.imageInput)),
  ];
}

/** The price of output at its dearest, by what the request asks for. */
function dearestOutput(row: TokenPrices, asked: HoldBounds): bigint {
  const { output, audioOutput, imageOutput } = pricesOf(row);
  return dearest(
    output,
    asked.audioOutput ? audioOutput : 0n,
    asked.imageOutput ? imageOutput : 0n,
  );
}

/** Calls of tools, each with its price. A price is for one call. */
function callsOf({ toolCalls }: PriceList, calls: ChargedTokens["toolCalls"]): PricedUnits[] {
  if (!toolCalls || !calls) return [];
  return Object.entries(calls).map(([family, count]) => ({
    units: BigInt(count) * million,
    perMillion: ownOf(toolCalls, family) ?? 0n,
  }));
}

/** Prices by percent. The catalog has checked that each is a whole number. */
function inPercent(parts: readonly PricedUnits[], percent: bigint): PricedUnits[] {
  return parts.map(({ units, perMillion }) => ({
    units,
    perMillion: (perMillion * percent) / whole,
  }));
}

function highestPercent({ servedTiers = {} }: PriceList): bigint {
  return dearest(whole, ...Object.values(servedTiers));
}

/** The number under a name that an upstream wrote. */
function ownOf(numbers: Readonly<Record<string, bigint>> = {}, name = ""): bigint | undefined {
  return Object.hasOwn(numbers, name) ? numbers[name] : undefined;
}

function dearest(...prices: bigint[]): bigint {
  return prices.reduce((most, price) => (price > most ? price : most));
}

function part(tokens: number, perMillion: bigint): PricedUnits {
  return { units: BigInt(tokens), perMillion };
}

function sumOf(parts: readonly PricedUnits[]): bigint {
  return parts.reduce((sum, { units, perMillion }) => sum + units * perMillion, 0n);
}
