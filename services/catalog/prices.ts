// The part of the catalog's schema that has the prices of text, their faults, and their form in a snapshot.

import type { MessageInitShape } from "@bufbuild/protobuf";
import { z } from "zod";
import type { FaultPath, FoundFault } from "#kit/base/valid-parts.ts";
import type { TextPricesSchema } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  defaultToolCalls,
  maxListItems,
  maxLongInputRows,
  maxNameCharacters,
  maxPrice,
  maxTierPercent,
  maxTokens,
  maxToolCalls,
} from "./limits.ts";

/** A name that people read, or that an upstream knows. */
export const label = z.string().min(1).max(maxNameCharacters);
/** Credits, or USD micros for a million units or for a call. */
export const price = z.int().min(0).max(maxPrice);
/** A bound in tokens. */
export const tokens = z.int().min(1).max(maxTokens);

/** A name that is a part of stored documents: of a service tier, or of a family of tools. */
const plainName = label.regex(/^[\w-]+$/, "must be a name of letters, digits, '_' and '-'");

const tokenPrices = {
  inputUsdMicrosPerMillionTokens: price,
  cachedInputUsdMicrosPerMillionTokens: price.optional(),
  outputUsdMicrosPerMillionTokens: price,
  cacheWriteUsdMicrosPerMillionTokens: price.optional(),
  cacheWriteLongUsdMicrosPerMillionTokens: price.optional(),
  audioInputUsdMicrosPerMillionTokens: price.optional(),
  imageInputUsdMicrosPerMillionTokens: price.optional(),
  cachedAudioInputUsdMicrosPerMillionTokens: price.optional(),
  audioOutputUsdMicrosPerMillionTokens: price.optional(),
  imageOutputUsdMicrosPerMillionTokens: price.optional(),
};
const textPrices = {
  ...tokenPrices,
  longInput: z
    .array(z.strictObject({ aboveInputTokens: tokens, ...tokenPrices }))
    .max(maxLongInputRows)
    .default([]),
  servedTiers: mapOf(z.int().min(1).max(maxTierPercent)),
  toolCalls: mapOf(price),
};
const priceList = z.strictObject(textPrices);

/** `pricing` of a chat model. */
export const chatPricing = z.strictObject({
  ...textPrices,
  toolCallLimit: z.int().min(1).max(maxToolCalls).default(defaultToolCalls),
  upstreamCost: priceList.optional(),
});

type PriceList = z.output<typeof priceList>;
type ChatPricing = z.output<typeof chatPricing>;
type TokenPrices = Partial<Record<keyof typeof tokenPrices, number | undefined>>;

/** Numbers by name. */
function mapOf(value: z.ZodInt) {
  return z
    .record(plainName, value)
    .refine((map) => Object.keys(map).length <= maxListItems, `has at most ${maxListItems} entries`)
    .default({});
}

/** Faults between the prices of a chat model. */
export function pricingFaults(pricing: ChatPricing, at: At): FoundFault[] {
  const { upstreamCost } = pricing;
  const inCost: At = (...rest) => at("upstreamCost", ...rest);
  return [...listFaults(pricing, at), ...(upstreamCost ? listFaults(upstreamCost, inCost) : [])];
}

/** A path in the prices that are judged. */
type At = (...rest: FaultPath) => FaultPath;

const names = Object.keys(tokenPrices) as (keyof typeof tokenPrices)[];

function listFaults(list: PriceList, at: At): FoundFault[] {
  const { longInput, servedTiers } = list;
  const rows = longInput.flatMap((row, index): FoundFault[] => {
    const before = longInput[index - 1];
    const isAscending = !before || before.aboveInputTokens < row.aboveInputTokens;
    const missing = names.filter((name) => list[name] !== undefined && row[name] === undefined);
    return [
      ...(isAscending
        ? []
        : [{ path: at("longInput", index, "aboveInputTokens"), message: order }]),
      ...missing.map((name) => ({ path: at("longInput", index, name), message: notNamed })),
    ];
  });
  const tiers = Object.entries(servedTiers).flatMap(([tier, percent]): FoundFault[] => {
    const isWhole = [list, ...longInput].every((row) => isWholeIn(percent, row));
    return isWhole ? [] : [{ path: at("servedTiers", tier), message: broken }];
  });
  return [...rows, ...tiers];
}

const order = "must be above that of the row before";
const notNamed = "is required, because the prices for a shorter input name it";
const broken = "is no whole number of USD micros for one of the prices";

/** Is this percent of each price a whole number? Then a charge is still rounded once. */
function isWholeIn(percent: number, row: TokenPrices): boolean {
  return names.every((name) => (BigInt(row[name] ?? 0) * BigInt(percent)) % 100n === 0n);
}

/** The prices on the wire. Absent where there are no others than those of input, cached input and output. */
export function pricesOf(
  pricing: ChatPricing,
): MessageInitShape<typeof TextPricesSchema> | undefined {
  const { longInput, servedTiers, toolCalls } = pricing;
  const isPlain =
    names.every((name) => plain.has(name) || pricing[name] === undefined) &&
    [longInput, Object.keys(servedTiers), Object.keys(toolCalls)].every(
      ({ length }) => length === 0,
    );
  return isPlain ? undefined : listOf(pricing);
}

const plain: ReadonlySet<string> = new Set([
  "inputUsdMicrosPerMillionTokens",
  "cachedInputUsdMicrosPerMillionTokens",
  "outputUsdMicrosPerMillionTokens",
]);

/** A list of prices on the wire. */
export function listOf(list: PriceList): MessageInitShape<typeof TextPricesSchema> {
  return {
    base: tokensOf(list),
    longInput: list.longInput.map((row) => ({
      aboveInputTokens: BigInt(row.aboveInputTokens),
      prices: tokensOf(row),
    })),
    servedTiers: list.servedTiers,
    toolCalls: Object.fromEntries(
      Object.entries(list.toolCalls).map(([family, micros]) => [family, BigInt(micros)]),
    ),
  };
}

/** `cacheWriteUsdMicrosPerMillionTokens` is `cacheWrite` on the wire. */
function tokensOf(row: TokenPrices) {
  return Object.fromEntries(
    names.flatMap((name) => {
      const micros = row[name];
      const field = name.replace("UsdMicrosPerMillionTokens", "");
      return micros === undefined ? [] : [[field, BigInt(micros)]];
    }),
  );
}
