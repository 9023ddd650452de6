// Notes which row of prices a charge used, and what the operator pays for it. The caller's charge does not depend on this.

import type { UsageDetails } from "../../upstreams/text/port.ts";
import type { Charge } from "../store/store.ts";
import { listedCost, rowBoundOf } from "./price-list.ts";
import type { ChargedTokens, TextPrice } from "./pricing.ts";

/** The facts about a charge that its record has beside the tokens: the row of the price, and the operator's own cost. */
export function chargeNotes(
  { list, upstreamCost }: TextPrice,
  tokens: ChargedTokens,
  details: UsageDetails | undefined,
): Pick<Charge, "priceAbove" | "upstreamCost" | "upstreamCostSource"> {
  const bound = rowBoundOf(list, tokens.input);
  const row = bound > 0 ? { priceAbove: bound } : {};
  const reported = details?.costUsdMicros;
  if (reported !== undefined) {
    return { ...row, upstreamCost: BigInt(reported), upstreamCostSource: "reported" };
  }
  if (!upstreamCost) return row;
  const cost = listedCost(upstreamCost, tokens);
  return { ...row, upstreamCost: cost, upstreamCostSource: "catalog" };
}
