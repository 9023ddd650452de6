// Turns the prices of a catalog into the price list that text charges by. The rest of this folder then knows nothing of the
// catalog's messages.

import type {
  TextPrices,
  TokenPrices as TokenPricesMessage,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import type { PriceList, TokenPrices } from "./price-list.ts";

/** Lists of the catalog in force. Each is made once, because every request has it. */
const made = new WeakMap<TextPrices, PriceList>();

/** The price list in a catalog's message. */
export function priceListOf(prices: TextPrices): PriceList {
  const known = made.get(prices);
  if (known) return known;
  const { longInput, servedTiers, toolCalls } = prices;
  const list: PriceList = {
    ...rowOf(prices.base),
    ...(longInput.length > 0 && {
      longInput: longInput.map((row) => ({
        aboveInputTokens: row.aboveInputTokens,
        ...rowOf(row.prices),
      })),
    }),
    ...(Object.keys(servedTiers).length > 0 && {
      servedTiers: Object.fromEntries(
        Object.entries(servedTiers).map(([tier, percent]) => [tier, BigInt(percent)]),
      ),
    }),
    ...(Object.keys(toolCalls).length > 0 && { toolCalls: { ...toolCalls } }),
  };
  made.set(prices, list);
  return list;
}

/** The prices that the row names. An absent one stays absent. */
function rowOf(row: TokenPricesMessage | undefined): TokenPrices {
  if (!row) throw new TypeError("a price list without its prices");
  const { $typeName: _, $unknown: __, ...prices } = row;
  return Object.fromEntries(
    Object.entries(prices).filter(([, price]) => price !== undefined),
  ) as unknown as TokenPrices;
}
