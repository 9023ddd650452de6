// Divides the usage that an upstream reports into the classes that have prices. Reports that cannot be true are turned down here.

import type { ReportedUsage, UsageDetails } from "../../upstreams/text/port.ts";
import type { ChargedTokens } from "./pricing.ts";

/** The classes of a report's tokens. `asksLongCache`: see `TextPrice`. Undefined where the numbers cannot be true. */
export function classesOf(
  { inputTokens, cachedInputTokens }: ReportedUsage,
  details: UsageDetails,
  asksLongCache: boolean,
): Partial<ChargedTokens> | undefined {
  const { toolCalls: _t, unnamedCalls: _u, costUsdMicros: _c, servedTier, ...counts } = details;
  const { cacheWrite: written = 0, cacheWriteLong, ...parts } = counts;
  if (!Object.values(counts).every(isCount)) return undefined;
  if (cachedInputTokens + written > inputTokens) return undefined;
  const long = cacheWriteLong ?? (asksLongCache ? written : 0);
  if (long > written) return undefined;
  return {
    ...(written > long && { cacheWrite: written - long }),
    ...(long > 0 && { cacheWriteLong: long }),
    ...parts,
    ...(servedTier !== undefined && { servedTier }),
  };
}

/** The calls of the upstream's tools, as they were seen and as they were reported: the larger number of each family. */
export function callsMade(
  seen: ChargedTokens["toolCalls"] = {},
  { toolCalls: told = {}, unnamedCalls = 0 }: UsageDetails = {},
): Pick<ChargedTokens, "toolCalls"> {
  const calls = new Map(Object.entries(seen));
  for (const [family, count] of Object.entries(told)) {
    if (isCount(count)) calls.set(family, Math.max(calls.get(family) ?? 0, count));
  }
  const named = [...calls.values()].reduce((sum, count) => sum + count, 0);
  // Tools that a server counts without their names are searches.
  if (isCount(unnamedCalls) && unnamedCalls > named) {
    calls.set(searches, (calls.get(searches) ?? 0) + unnamedCalls - named);
  }
  return calls.size > 0 ? { toolCalls: Object.fromEntries(calls) } : {};
}

const searches = "web_search";

function isCount(count: number): boolean {
  return Number.isSafeInteger(count) && count >= 0;
}
