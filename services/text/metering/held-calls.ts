import { optionalNumber } from "#common/words/body.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { familyOfTool } from "../../upstreams/text/judging/tool-calls.ts";
import type { TextOperation } from "../../upstreams/text/port.ts";
import { usualToolCalls } from "../base/limits.ts";
import type { PriceList } from "./price-list.ts";

/**
 * The most calls of the upstream's tools for which a request is held, by their family. The caller's bound of calls counts for all tools
 * together, so the dearest one is held for. Undefined where the request names no tool that has a price. Writes the bound into the body
 * of a Responses request. Chat Completions has no such bound.
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
  const asked = optionalNumber(body, "max_tool_calls", { integer: true, min: 0 });
  const most = Math.min(asked ?? Number.POSITIVE_INFINITY, toolCallLimit || usualToolCalls);
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
