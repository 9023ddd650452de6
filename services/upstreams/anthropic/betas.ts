// Decides which of Anthropic's beta features a request names in its header. A feature that belongs to a field of the body is
// named only with that field.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** The version of the API whose shapes are used here. Anthropic has had one since 2023. */
export const apiVersion = "2023-06-01";

/**
 * The beginnings of the names of betas that travel with a field of the body. The date behind them changes. Those of fields that no
 * request has never travel.
 */
const withFields = {
  "advanced-tool-use-": ({ tools }: JsonObject) =>
    Array.isArray(tools) && tools.some((tool) => isJsonObject(tool) && isAdvanced(tool)),
  "context-management-": (body: JsonObject) => body.context_management !== undefined,
  "compact-": never,
  "computer-use-": ({ tools }: JsonObject, beta: string) =>
    Array.isArray(tools) &&
    tools.some((tool) => isJsonObject(tool) && betaOfTool(tool.type) === beta),
  "fast-mode-": never,
  "files-api-": never,
  "mcp-client-": never,
  "mid-conversation-": ({ messages }: JsonObject) =>
    Array.isArray(messages) && messages.some((one) => isJsonObject(one) && one.role === "system"),
  "thinking-binding-controls-": ({ thinking }: JsonObject) =>
    isJsonObject(thinking) && thinking.block_binding !== undefined,
} as const;

/** The beta that a tool of this type needs: of the same date. Undefined: none. */
export function betaOfTool(type: JsonValue | undefined): string | undefined {
  const date = typeof type === "string" ? /^computer_(\d{4})(\d{2})(\d{2})$/.exec(type) : null;
  return date ? `computer-use-${date.slice(1).join("-")}` : undefined;
}

function never(_: JsonObject): boolean {
  return false;
}

/** Fields of a tool that only this feature knows. */
export const advancedFields: readonly string[] = [
  "allowed_callers",
  "defer_loading",
  "input_examples",
];

function isAdvanced(tool: JsonObject): boolean {
  if (`${tool.type}`.startsWith("tool_search_")) return true;
  return advancedFields.some((name) => (tool[name] ?? null) !== null);
}

/** A feature whose beta travels with a field. */
export type PairedBeta = keyof typeof withFields;

/** May an upstream with these betas get the field of a feature? */
export function takesField(betas: readonly string[], feature: PairedBeta): boolean {
  return betas.some((beta) => beta.startsWith(feature));
}

/**
 * The betas of an upstream that a body is sent with. One that belongs to a field comes with that field, and never without. Another one
 * comes where the caller asks for it.
 */
export function betasOf(
  body: JsonObject,
  betas: readonly string[],
  asked: readonly string[] = [],
): string[] {
  const features = Object.entries(withFields);
  return betas.filter((beta) => {
    const [, isIn] = features.find(([feature]) => beta.startsWith(feature)) ?? [];
    return isIn ? isIn(body, beta) : asked.includes(beta);
  });
}
