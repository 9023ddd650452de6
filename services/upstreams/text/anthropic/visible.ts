// The lists of what callers of Messages see of Anthropic's answers: types of blocks and fields.

import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { type Fields, only } from "../allowed.ts";
import { asksForHost, hostBlocks } from "../host-tools.ts";
import { noUsage } from "../messages/usage.ts";

/** Types of blocks that every request can bring about: those of the SDK, 1.14, without tools of the host. */
const blockTypes: readonly string[] = ["text", "thinking", "redacted_thinking", "tool_use"];

/**
 * Types of blocks that callers see. `added`: those that the catalog names beside the known ones. `tools`: those of the request. Its tools
 * of the host bring about blocks of their own.
 */
export function seenTypes(
  added: readonly string[],
  tools: JsonValue | undefined,
): ReadonlySet<unknown> {
  return new Set([...blockTypes, ...added, ...(asksForHost(tools) ? hostBlocks : [])]);
}

/** Types of deltas of these blocks. */
export const deltaTypes: ReadonlySet<unknown> = new Set([
  ...["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta"],
]);

/** Numbers of tokens. Where and how Anthropic works for the operator (`inference_geo`, `speed`) is no caller's. */
const usageFields: Fields = {
  ...{ input_tokens: "plain", output_tokens: "plain" },
  ...{ cache_creation_input_tokens: "plain", cache_read_input_tokens: "plain" },
  cache_creation: { ephemeral_1h_input_tokens: "plain", ephemeral_5m_input_tokens: "plain" },
  output_tokens_details: { thinking_tokens: "plain" },
  server_tool_use: { web_fetch_requests: "plain", web_search_requests: "plain" },
  service_tier: "plain",
};

/** A usage that callers see, with every field. */
export function visibleUsage(usage: JsonObject): JsonObject {
  return { ...noUsage, ...only(usage, usageFields) };
}

/** Reports about the caller's own wishes: dropped thinking, and edits of the context. */
const outcomes = ["context_management", "input_transformations"] as const;

/** Fields of a message or an event beside its content that callers see as they came. */
export function visibleOutcomes(found: JsonObject): JsonObject {
  const seen = outcomes.filter((name) => (found[name] ?? null) !== null);
  return Object.fromEntries(seen.map((name) => [name, found[name] ?? null]));
}
