// Finds faults of chat models at upstreams of Anthropic's Messages. It is a part of `rules.ts`, for one protocol.

import type { FoundFault } from "#kit/base/valid-parts.ts";
import type { At } from "../upstreams/catalog-rules.ts";
import { membersOf } from "./lanes.ts";
import type { CatalogFile, CatalogModel } from "./schema.ts";

/**
 * Faults of a chat model in its keys for upstreams of Messages. Also those where such an upstream is asked for a cache whose writes have
 * no price: they would be charged as plain input, which is cheaper.
 */
export function messagesFaults(file: CatalogFile, model: CatalogModel, at: At): FoundFault[] {
  if (model.kind !== "chat") return [];
  const upstreams = [model.upstream, ...model.fallbackUpstreams]
    .flatMap((name) => membersOf(file, name))
    .flatMap((name) => file.upstreams[name] ?? [])
    .filter(({ protocol }) => protocol === "anthropic");
  if (upstreams.length === 0) {
    const message = "is for models of anthropic upstreams";
    return [
      ...(model.forcedTools ? [] : [{ path: at("forcedTools"), message }]),
      ...(model.blockBinding === undefined ? [] : [{ path: at("blockBinding"), message }]),
    ];
  }
  const priced = {
    "5m": "cacheWriteUsdMicrosPerMillionTokens",
    "1h": "cacheWriteLongUsdMicrosPerMillionTokens",
  } as const;
  const names = new Set(
    upstreams.flatMap(({ autoCache = "off" }) => (autoCache === "off" ? [] : [priced[autoCache]])),
  );
  return [...names]
    .filter((name) => model.pricing[name] === undefined)
    .map((name) => ({
      path: at("pricing", name),
      message: "is required, because an upstream's autoCache writes to its cache",
    }));
}
