// Shows the prices of a chat model under the names of the catalog file, for callers and for operators.

import type { JsonObject } from "#kit/base/json.ts";
import type {
  ChatSpec,
  TextPrices,
  TokenPrices,
} from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

// The file's bounds keep every int64 of a catalog well inside the range that a JSON number holds exactly.

/** The prices of a chat model under the names of the catalog file. The operator's own cost is never among them. */
export function chatPricing(chat: ChatSpec): JsonObject {
  const { prices } = chat;
  return {
    inputUsdMicrosPerMillionTokens: Number(chat.inputUsdMicrosPerMillionTokens),
    cachedInputUsdMicrosPerMillionTokens: Number(chat.cachedInputUsdMicrosPerMillionTokens),
    outputUsdMicrosPerMillionTokens: Number(chat.outputUsdMicrosPerMillionTokens),
    ...(prices && listPricing(prices)),
    ...(prices &&
      Object.keys(prices.toolCalls).length > 0 && { toolCallLimit: chat.toolCallLimit }),
  };
}

/** A list of prices under the names of the catalog file. */
export function listPricing({ base, longInput, servedTiers, toolCalls }: TextPrices): JsonObject {
  return {
    ...rowOf(base),
    ...(longInput.length > 0 && {
      longInput: longInput.map((row) => ({
        aboveInputTokens: Number(row.aboveInputTokens),
        ...rowOf(row.prices),
      })),
    }),
    ...(Object.keys(servedTiers).length > 0 && { servedTiers: { ...servedTiers } }),
    ...(Object.keys(toolCalls).length > 0 && {
      toolCalls: Object.fromEntries(
        Object.entries(toolCalls).map(([family, price]) => [family, Number(price)]),
      ),
    }),
  };
}

/** A row's prices as the file gives them: a class without a price of its own is left out. */
function rowOf(row: TokenPrices | undefined): JsonObject {
  const { $typeName: _, $unknown: __, ...prices } = row ?? ({} as TokenPrices);
  return Object.fromEntries(
    Object.entries(prices)
      .filter(([, price]) => price !== undefined)
      .map(([name, price]) => [`${name}UsdMicrosPerMillionTokens`, Number(price)]),
  );
}
