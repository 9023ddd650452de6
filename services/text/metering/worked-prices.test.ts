import { describe, expect, test } from "vitest";
import type { ReportedUsage, UsageDetails } from "../../upstreams/text/port.ts";
import type { Intent } from "../store/store.ts";
import { decide, type End } from "./charge.ts";
import { type HeldContent, listedCost, type PriceList, type TokenPrices } from "./price-list.ts";
import {
  type ChargedTokens,
  chargeOf,
  holdAmountOf,
  outputWithin,
  type TextPrice,
  type TokenBounds,
} from "./pricing.ts";

// Prices of bills as providers write them, to the micro. Every price is written in micros for a token, which is dollars for a million.

type Dollars = Partial<Record<keyof TokenPrices, number>>;

function rowOf(dollars: Dollars): TokenPrices {
  const row = Object.entries(dollars).map(([name, price]) => [
    name,
    BigInt(Math.round(price * 1_000_000)),
  ]);
  return Object.fromEntries(row);
}

/** A price list: input, cached input, cache write, long cache write, output. A null is not named. */
function listOf(
  [input, cachedInput, cacheWrite, cacheWriteLong, output]: readonly (number | null)[],
  more: Dollars = {},
): TokenPrices {
  const named = Object.entries({ input, cachedInput, cacheWrite, cacheWriteLong, output });
  return rowOf({ ...Object.fromEntries(named.filter(([, price]) => price !== null)), ...more });
}

function priced(list: PriceList, more: Partial<TextPrice> = {}): TextPrice {
  const { input, output, cachedInput = input } = list;
  return { input, cachedInput, output, list, ...more };
}

/** A price of a catalog that names no others. */
function plainly(input: number, cachedInput: number, output: number): TextPrice {
  return rowOf({ input, cachedInput, output }) as TextPrice;
}

const old = plainly(1, 0.1, 10);
const written = priced(listOf([1, 0.1, 1.25, null, 10]));
const sol = listOf([2, 0.1, 2.5, null, 10]);
const opus = listOf([4, 0.2, 5, 8, 20]);
const opusTiers = { ...opus, servedTiers: { standard: 100n, fast: 200n } };
const haiku: PriceList = {
  ...listOf([0.1, 0.01, 0.125, 0.2, 0.5]),
  longInput: [{ aboveInputTokens: 100_000n, ...listOf([0.5, 0.05, 0.625, 1, 2.5]) }],
};
const astra: PriceList = {
  ...listOf([10, 1, 12.5, null, 50]),
  longInput: [{ aboveInputTokens: 272_000n, ...listOf([20, 2, 25, null, 75]) }],
};
const grok: PriceList = {
  ...listOf([2, 0.5, null, null, 6]),
  longInput: [{ aboveInputTokens: 199_999n, ...listOf([4, 1, null, null, 12]) }],
};
const gemini: PriceList = {
  ...listOf([1.25, 0.125, null, null, 10]),
  longInput: [{ aboveInputTokens: 200_000n, ...listOf([2.5, 0.25, null, null, 15]) }],
};
const flash = listOf([0.3, 0.03, null, null, 2.5], { audioInput: 1, cachedAudioInput: 0.1 });
const tiered: PriceList = {
  ...sol,
  servedTiers: { default: 100n, priority: 200n, flex: 50n },
};
const searching: PriceList = {
  ...sol,
  toolCalls: { web_search: 10_000n, file_search: 2_500n, code_interpreter: 30_000n },
};

const endless = 10n ** 15n;

/** Tokens of input T, cached c, written w, written for long l, and output O. */
function tokens(
  input: number,
  {
    c = 0,
    w = 0,
    l = 0,
    ...more
  }: Partial<ChargedTokens> & Record<string, unknown> & { c?: number; w?: number; l?: number },
  output: number,
): ChargedTokens {
  return { input, cachedInput: c, cacheWrite: w, cacheWriteLong: l, output, ...more };
}

describe("charges", () => {
  test.each<[number, string, TextPrice, ChargedTokens, number]>([
    [4, "cached input", old, tokens(1_000, { c: 900 }, 100), 1_190],
    [5, "writes without a price", old, tokens(1_000, { w: 900 }, 10), 1_100],
    [6, "writes", written, tokens(1_000, { w: 900 }, 10), 1_325],
    [7, "reads and writes", written, tokens(1_000, { c: 500, w: 400 }, 10), 750],
    [8, "long writes fall to writes", written, tokens(1_000, { l: 900 }, 10), 1_325],
    [11, "0.1 rounds up", priced(sol), tokens(1, { c: 1 }, 0), 1],
    [12, "one rounding", priced(sol), tokens(3, { c: 3 }, 1), 11],
    [13, "a coding turn", priced(sol), tokens(68_000, { c: 60_000, w: 7_000 }, 1_200), 37_500],
    [14, "nothing", priced(sol), tokens(0, {}, 0), 0],
    [15, "all short", priced(opus), tokens(25_100, { c: 20_000, w: 5_000 }, 300), 35_400],
    [16, "split", priced(opus), tokens(25_100, { c: 20_000, w: 3_000, l: 2_000 }, 300), 41_400],
    [17, "no output", priced(opus), tokens(5_000, { w: 4_900 }, 0), 24_900],
    [20, "fast", priced(opusTiers), tokens(1_000, { servedTier: "fast" }, 100), 12_000],
    [
      22,
      "searches",
      priced({ ...opus, toolCalls: { web_search: 10_000n } }),
      tokens(12_000, { toolCalls: { web_search: 3 } }, 500),
      88_000,
    ],
    [23, "a message and a compaction", priced(opus), tokens(181_000, {}, 3_700), 798_000],
    [24, "beside", priced(opus), tokens(10_000, { c: 8_000, w: 1_000, l: 500 }, 200), 16_600],
    [25, "at the bound", priced(haiku), tokens(100_000, { c: 90_000, w: 5_000 }, 1_000), 2_525],
    [26, "above it", priced(haiku), tokens(100_001, { c: 90_000, w: 5_000 }, 1_000), 12_626],
    [28, "at the bound", priced(astra), tokens(272_000, { c: 200_000 }, 2_000), 1_020_000],
    [29, "above it", priced(astra), tokens(272_001, { c: 200_000 }, 2_000), 1_990_020],
    [
      30,
      "writes above it",
      priced(astra),
      tokens(300_000, { c: 200_000, w: 50_000 }, 2_000),
      2_800_000,
    ],
    [31, "below", priced(grok), tokens(199_999, {}, 1_000), 405_998],
    [31, "from the bound on", priced(grok), tokens(200_000, {}, 1_000), 812_000],
    [
      33,
      "two kinds of search",
      priced({ ...grok, toolCalls: { web_search: 5_000n, x_search: 5_000n } }),
      tokens(1_000, { toolCalls: { web_search: 2, x_search: 1 } }, 500),
      20_000,
    ],
    [34, "at the bound", priced(gemini), tokens(200_000, { c: 50_000 }, 500), 198_750],
    [34, "above it", priced(gemini), tokens(200_001, { c: 50_000 }, 500), 395_003],
    [35, "audio", priced(flash), tokens(2_000, { audioInput: 1_500 }, 100), 1_900],
    [
      36,
      "cached audio",
      priced(flash),
      tokens(2_000, { c: 1_000, audioInput: 1_500, cachedAudioInput: 800 }, 100),
      1_126,
    ],
    [
      38,
      "an image",
      priced(listOf([0.3, 0.03, null, null, 2.5], { imageOutput: 30 })),
      tokens(300, { imageOutput: 1_290 }, 1_330),
      38_890,
    ],
    [
      39,
      "spoken",
      priced(listOf([2.5, null, null, null, 10], { audioInput: 40, audioOutput: 80 })),
      tokens(600, { audioInput: 500, audioOutput: 300 }, 400),
      45_250,
    ],
    [40, "priority", priced(tiered), tokens(1_000, { c: 400, servedTier: "priority" }, 100), 4_480],
    [40, "default", priced(tiered), tokens(1_000, { c: 400, servedTier: "default" }, 100), 2_240],
    [40, "flex", priced(tiered), tokens(1_000, { c: 400, servedTier: "flex" }, 100), 1_120],
    [
      41,
      "tools",
      priced(searching),
      tokens(20_000, { toolCalls: { web_search: 2, file_search: 1, code_interpreter: 1 } }, 800),
      100_500,
    ],
  ])("%i: %s", (_number, _name, price, used, micros) => {
    expect(chargeOf(price, used, endless)).toBe(BigInt(micros));
  });

  test("9: at most the hold", () => {
    expect(chargeOf(written, tokens(1_000, { w: 900 }, 10), 1_200n)).toBe(1_200n);
  });

  test("42: what the operator pays is beside the charge", () => {
    const used = tokens(68_000, { c: 60_000, w: 7_000 }, 1_200);
    const upstreamCost = listOf([1.8, 0.09, 2.25, null, 9]);
    const price = priced(sol, { upstreamCost });
    expect(chargeOf(price, used, endless)).toBe(37_500n);
    expect(listedCost(upstreamCost, used)).toBe(33_750n);
  });

  test("a tier or a tool that the list does not name costs what it cost before", () => {
    const odd = { servedTier: "constructor", toolCalls: { toString: 4 } };
    const price = priced({ ...tiered, toolCalls: { web_search: 10_000n } });
    expect(chargeOf(price, tokens(1_000, odd, 100), endless)).toBe(3_000n);
  });

  test("audio and images that do not fit into the fresh input are text", () => {
    const price = priced(listOf([1, 0.1, null, null, 1], { audioInput: 10, imageInput: 5 }));
    const most = tokens(100, { c: 60, audioInput: 30, imageInput: 90 }, 0);
    // 60 × 0.1 + 30 × 10 + 10 × 5
    expect(chargeOf(price, most, endless)).toBe(356n);
  });
});

describe("holds", () => {
  test.each<[number, string, TextPrice, TokenBounds & HeldContent, number]>([
    [1, "old", old, { input: 5_000, output: 1_000 }, 15_000],
    [2, "writes", written, { input: 5_000, output: 1_000 }, 16_250],
    [3, "cached dearer", plainly(1, 3, 10), { input: 10, output: 1 }, 40],
    [18, "no long entry", priced(opus), { input: 49_000, output: 4_096 }, 326_920],
    [
      19,
      "a long entry",
      priced(opus, { asksLongCache: true }),
      { input: 49_000, output: 4_096 },
      473_920,
    ],
    [21, "the higher percent", priced(opusTiers), { input: 49_000, output: 4_096 }, 653_840],
    [27, "at the bound", priced(haiku), { input: 100_000, output: 1_000 }, 13_000],
    [27, "above it", priced(haiku), { input: 100_001, output: 1_000 }, 65_001],
    [37, "audio", priced(flash), { input: 2_000, audioInput: 1_500, output: 1_000 }, 4_150],
    [
      41,
      "tools",
      priced(searching),
      { input: 20_000, output: 1_000, toolCalls: { web_search: 5, code_interpreter: 1 } },
      140_000,
    ],
  ])("%i: %s", (_number, _name, price, bounds, micros) => {
    expect(holdAmountOf(price, bounds, bounds)).toBe(BigInt(micros));
    expect(outputWithin(price, bounds, BigInt(micros), bounds)).toBe(bounds.output);
  });

  const kinds = ["servedTier", "c", "w", "l", "audioInput"] as const;
  test.each<[string, PriceList, boolean]>([
    ["long input", haiku, false],
    ["long writes", haiku, true],
    ["audio", { ...flash, ...haiku, audioInput: 1_000_000n }, true],
    ["tiers", { ...opusTiers, longInput: haiku.longInput ?? [] }, false],
    ["dear reads", { ...sol, cachedInput: 9_000_000n }, false],
  ])("%s: no usage within the bounds costs more", (_name, list, asksLongCache) => {
    const price = priced(list, asksLongCache ? { asksLongCache: true } : {});
    for (const input of [0, 1, 100_000, 100_001, 150_000]) {
      const bounds = { input, output: 700, audioInput: Math.min(input, 90_000) };
      const hold = holdAmountOf(price, bounds, bounds);
      for (const kind of kinds.filter((one) => one !== "l" || asksLongCache)) {
        for (const part of [0, 50_000, 90_000]) {
          const share = kind === "servedTier" ? "fast" : Math.min(part, input);
          const used = tokens(input, { [kind]: share }, 700);
          expect(chargeOf(price, used, endless)).toBeLessThanOrEqual(hold);
        }
      }
    }
  });

  test("what an amount pays for is held by no more than it, and a token more is not", () => {
    for (const list of [haiku, astra, opusTiers, searching]) {
      const price = priced(list);
      for (const input of [0, 99_999, 100_001, 272_001]) {
        const held = { toolCalls: { web_search: 2 } };
        const bounds = { input, output: 50_000 };
        const least = holdAmountOf(price, { input, output: 0 }, held);
        for (const more of [0n, 1n, 777n, 123_456n]) {
          const output = outputWithin(price, bounds, least + more, held);
          expect(holdAmountOf(price, { input, output }, held)).toBeLessThanOrEqual(least + more);
          if (output === bounds.output) continue;
          const next = holdAmountOf(price, { input, output: output + 1 }, held);
          expect(next).toBeGreaterThan(least + more);
        }
        expect(outputWithin(price, bounds, least - 1n, held)).toBe(0);
      }
    }
  });
});

describe("what an upstream reports", () => {
  const bounds = { input: 10_000, output: 1_000 };
  const decided = async (reported: ReportedUsage, price: TextPrice, end: Partial<End> = {}) => {
    const intent = { bounds, price, holdAmount: endless } as Intent;
    const { closing, disbelieved } = await decide(
      { kind: "completed", reported, ...end },
      intent,
      async () => [70, 7],
    );
    return { charge: closing.charge, disbelieved };
  };
  const reported = (details: UsageDetails, cachedInputTokens = 0): ReportedUsage => ({
    ...{ inputTokens: 1_000, cachedInputTokens, outputTokens: 10 },
    details,
  });

  test("10: more reads and writes than input are counted here, and reviewed", async () => {
    const odd = reported({ cacheWrite: 500 }, 600);
    const { charge, disbelieved } = await decided(odd, written);
    expect(charge).toMatchObject({ amount: 140n, input: 70, output: 7, estimated: true });
    expect(disbelieved).toBe(odd);
    // A catalog of three prices means what it meant.
    expect(await decided(odd, old)).toMatchObject({
      charge: { amount: 560n, estimated: false },
      disbelieved: undefined,
    });
  });
  test.each<[string, UsageDetails]>([
    ["no number", { audioInput: Number.NaN }],
    ["a number below 0", { imageInput: -1 }],
    ["a part of a token", { audioOutput: 0.5 }],
    ["more long writes than writes", { cacheWrite: 1, cacheWriteLong: 2 }],
  ])("%s is not believed", async (_name, details) => {
    const { charge } = await decided(reported(details), written);
    expect(charge.estimated).toBe(true);
  });
  test("writes without their time are long where the request asked for long ones", async () => {
    const long = priced(opus, { asksLongCache: true });
    const { charge } = await decided(reported({ cacheWrite: 900 }), long);
    expect(charge).toMatchObject({ cacheWriteLong: 900, amount: 7_800n });
    const split = reported({ cacheWrite: 900, cacheWriteLong: 0 });
    expect((await decided(split, long)).charge).toMatchObject({ cacheWrite: 900, amount: 5_100n });
  });
  test("32: by xAI's usage", async () => {
    const usage = { inputTokens: 1_000, cachedInputTokens: 200, outputTokens: 500 };
    expect((await decided(usage, priced(grok))).charge.amount).toBe(4_700n);
  });
  test("calls that were seen and calls that were reported are the same calls", async () => {
    const toolCalls = { web_search: 2, x_search: 1 };
    const price = priced({ ...grok, toolCalls: { web_search: 5_000n, x_search: 5_000n } });
    const { charge } = await decided(reported({ unnamedCalls: 3 }), price, { toolCalls });
    expect(charge).toMatchObject({ toolCalls, amount: 17_060n });
    const more = await decided(reported({ unnamedCalls: 5, toolCalls: { x_search: 2 } }), price);
    expect(more.charge.toolCalls).toEqual({ web_search: 3, x_search: 2 });
  });
  test("calls that were seen are charged where no usage was reported", async () => {
    const price = priced(searching);
    const end: End = { kind: "left", toolCalls: { web_search: 2 } };
    const intent = { bounds, price, holdAmount: endless } as Intent;
    const { closing } = await decide(end, intent, async () => [70, 7]);
    // 70 × 2 + 7 × 10 + 2 × 10,000
    expect(closing.charge).toMatchObject({ amount: 20_210n, estimated: true });
  });
  test("audio that is counted here has its own price", async () => {
    const intent = {
      bounds: { ...bounds, countedAudio: 50 },
      price: priced(flash),
      holdAmount: endless,
    } as Intent;
    const { closing } = await decide({ kind: "left" }, intent, async () => [70, 7]);
    // 20 × 0.3 + 50 × 1 + 7 × 2.5
    expect(closing.charge.amount).toBe(74n);
  });
  test("42: the operator's cost is that of the upstream's report, else of the catalog", async () => {
    const price = priced(sol, { upstreamCost: listOf([1.8, 0.09, 2.25, null, 9]) });
    const usage = { inputTokens: 68_000, cachedInputTokens: 60_000, outputTokens: 1_200 };
    const wide = { input: 100_000, output: 2_000 };
    const chargedFor = async (details: UsageDetails) => {
      const intent = { bounds: wide, price, holdAmount: endless } as Intent;
      const end: End = { kind: "completed", reported: { ...usage, details } };
      return (await decide(end, intent, async () => [0, 0])).closing.charge;
    };
    const told = { amount: 37_500n, upstreamCost: 33_750n, upstreamCostSource: "catalog" };
    expect(await chargedFor({ cacheWrite: 7_000 })).toMatchObject(told);
    expect(await chargedFor({ cacheWrite: 7_000, costUsdMicros: 40_001 })).toMatchObject({
      ...{ amount: 37_500n, upstreamCost: 40_001n, upstreamCostSource: "reported" },
    });
  });
  test("the record says which row priced the request", async () => {
    const usage = { inputTokens: 100_001, cachedInputTokens: 0, outputTokens: 1 };
    const intent = {
      bounds: { input: 200_000, output: 10 },
      price: priced(haiku),
      holdAmount: endless,
    } as Intent;
    const rowOf = async (inputTokens: number) => {
      const end: End = { kind: "completed", reported: { ...usage, inputTokens } };
      return (await decide(end, intent, async () => [0, 0])).closing.charge.priceAbove;
    };
    expect([await rowOf(100_000), await rowOf(100_001)]).toEqual([undefined, 100_000]);
  });
});
