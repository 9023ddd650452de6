// Bounds the calls of the upstream's own tools in a request, because each may cost money. The hold covers that many.

import { optionalNumber } from "#common/words/body.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { familyOfTool } from "../../upstreams/text/judging/tool-calls.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import { usualToolCalls } from "../base/limits.ts";
import type { PriceList } from "./price-list.ts";

/**
 * The most calls of the upstream's tools for which a request is held, by their family. Undefined where the request names no tool that
 * has a price. Writes the bounds into the body. A Responses request has one for all tools together, so the dearest one is held for. A
 * Messages request has one for each tool. Chat Completions has none.
 */
export function holdCalls(
  body: JsonObject,
  { toolCalls = {} }: PriceList,
  { toolCallLimit }: ChatSpec,
  { operation, hostedTypes }: { operation: TextOperation; hostedTypes: readonly string[] },
): Record<string, number> | undefined {
  const families = new Set(hostedTypes.map(familyOfTool));
  const priced = Object.entries(toolCalls).filter(([family]) => families.has(family));
  if (priced.length === 0) return undefined;
  const limit = toolCallLimit || usualToolCalls;
  if (operation === "messages") return holdUses(body, new Map(priced), limit);
  const asked = optionalNumber(body, "max_tool_calls", { integer: true, min: 0 });
  const most = Math.min(asked ?? Number.POSITIVE_INFINITY, limit);
  if (operation === "responses") body.max_tool_calls = most;
  const calls: Record<string, number> = {};
  let dearest: (typeof priced)[number] | undefined;
  for (const one of priced) {
    const [family, price] = one;
    // A request makes its own container, whose price covers all calls in it.
    if (family === "code_interpreter") calls[family] = Math.min(most, 1);
    else if (!dearest || price > dearest[1]) dearest = one;
  }
  if (dearest) calls[dearest[0]] = most;
  return calls;
}

/** The calls of a Messages request, each of whose tools gets a bound of its own: the caller's, at most `limit`. */
function holdUses(
  body: JsonObject,
  priced: ReadonlyMap<string, bigint>,
  limit: number,
): Record<string, number> {
  const calls: Record<string, number> = {};
  const bounded = (tool: JsonValue) => {
    if (!isJsonObject(tool)) return tool;
    const family = familyOfTool(`${tool.type}`);
    if (!priced.has(family)) return tool;
    // All code of a request runs in one container. Its tool has no bound of calls.
    if (family === "code_execution") {
      calls[family] = 1;
      return tool;
    }
    const asked = optionalNumber(tool, "max_uses", { integer: true, min: 1 });
    const most = Math.min(asked ?? limit, limit);
    calls[family] = (calls[family] ?? 0) + most;
    return { ...tool, max_uses: most };
  };
  if (Array.isArray(body.tools)) body.tools = body.tools.map(bounded);
  return calls;
}
