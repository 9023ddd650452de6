import type { SeenRequest } from "../scripted-upstream.ts";
import { hashOf } from "./anthropic.ts";

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape.
type Found = any;

/** Fields of a request, and the beginning of the beta that some of them need. */
const fields: Readonly<Record<string, string>> = {
  ...{ model: "", max_tokens: "", messages: "", system: "", tools: "", tool_choice: "" },
  ...{ thinking: "", output_config: "", stop_sequences: "", stream: "", metadata: "" },
  ...{ temperature: "", top_p: "", top_k: "", cache_control: "", service_tier: "" },
  context_management: "context-management-",
};
/** Types of the results of tools that it runs itself. */
const hostResults = ["web_search", "web_fetch", "tool_search", "code_execution"].map(
  (tool) => `${tool}_tool_result`,
);
/** Blocks that each role may send. */
const blocks: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image", "document", "search_result", "tool_result"],
  assistant: [
    ...["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use"],
    ...hostResults,
  ],
  system: ["text"],
};
const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/**
 * The first fault of a request, in Anthropic's words, or in like words. Undefined where it has none. `signed`: the thinking that was made
 * before, and what each stood behind.
 */
export function faultIn(
  { body, headers }: SeenRequest,
  signed: ReadonlyMap<string, string>,
): string | undefined {
  const betas = `${headers["anthropic-beta"] ?? ""}`.split(",").filter(Boolean);
  const has = (feature: string) => betas.some((beta) => beta.startsWith(feature));
  for (const name of Object.keys(body ?? {})) {
    if (fields[name] === undefined || !(fields[name] === "" || has(fields[name])))
      return `${name}: Extra inputs are not permitted`;
  }
  if (!Number.isInteger(body?.max_tokens)) return "max_tokens: Field required";
  if (!Array.isArray(body.messages) || body.messages.length === 0)
    return "messages: at least one message is required";
  if (body.thinking?.block_binding && !has("thinking-binding-controls-"))
    return "thinking.adaptive.block_binding: Extra inputs are not permitted";
  if (!body.thinking?.block_binding && has("thinking-binding-controls-"))
    return "anthropic-beta: thinking-binding-controls without its field";
  const unnamed = (body.tools ?? []).findIndex((tool: Found) => !nameRule.test(tool.name));
  if (unnamed >= 0) return `tools.${unnamed}.custom.name: String should match pattern`;
  const unbounded = (body.tools ?? []).findIndex(isUnbounded);
  if (unbounded >= 0) return `tools.${unbounded}.max_uses: Input should be greater than 0`;
  if (body.tool_choice && !body.tools) return "tool_choice: may only be set with tools";
  return faultInTurns(body, has, signed);
}

const nameRule = /^[a-zA-Z0-9_-]{1,128}$/;

/** Has a tool a bound of its calls that is none? */
function isUnbounded({ max_uses: uses }: Found): boolean {
  return uses !== undefined && !(Number.isInteger(uses) && uses > 0);
}

/** State of the results of its own tools, at any depth of a block. */
export function statesIn(block: Found): string[] {
  if (typeof block !== "object" || block === null) return [];
  return Object.entries(block).flatMap(([name, value]) =>
    typeof value === "string" && name.startsWith("encrypted_") ? [value] : statesIn(value),
  );
}

function faultInTurns(
  body: Found,
  has: (feature: string) => boolean,
  signed: ReadonlyMap<string, string>,
): string | undefined {
  const { messages } = body;
  if (messages[0].role !== "user") return "messages: first message must use the user role";
  for (const [at, { role, content }] of messages.entries()) {
    const known = blocks[role];
    if (!known) return `messages.${at}.role: Input should be 'user', 'assistant' or 'system'`;
    if (role === "system" && !has("mid-conversation-"))
      return `messages.${at}.role: Extra inputs are not permitted`;
    if (role === "system" && messages[at - 1]?.role !== "user")
      return `messages.${at}: system stands behind a user message`;
    if (content.length === 0) return `messages.${at}.content: must be non-empty`;
    const before = messages[at - 1];
    const calls = before?.role === "assistant" ? idsIn(before.content, "tool_use", "id") : [];
    const results = idsIn(content, "tool_result", "tool_use_id");
    const missing = role === "user" ? calls.filter((id) => !results.includes(id)) : [];
    if (missing.length > 0 || (calls.length > 0 && role !== "user"))
      return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing}`;
    if (results.some((id) => !calls.includes(id)))
      return `messages.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks`;
    if (typeof content === "string") continue;
    const ofHost = role === "assistant" && faultOfHost(content, at < messages.length - 1, signed);
    if (ofHost) return `messages.${at}: ${ofHost}`;
    for (const [place, block] of content.entries()) {
      const path = `messages.${at}.content.${place}`;
      const fault = faultInBlock(block, known, path);
      if (fault) return fault;
      const seal = block.signature ?? block.data;
      const isThought = block.type === "thinking" || block.type === "redacted_thinking";
      const behind = hashOf(body, messages.slice(0, at));
      const isDropped = body.thinking?.block_binding?.prefix_mismatch_behavior === "drop_block";
      if (isThought && signed.get(seal) === undefined)
        return `${path}: Invalid \`signature\` in \`thinking\` block`;
      if (isThought && signed.get(seal) !== behind && !isDropped)
        return `${path}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`;
    }
  }
  return undefined;
}

/** The calls of its own tools have their results behind them, except in the last turn. Their state is its own. */
function faultOfHost(
  content: Found,
  isOver: boolean,
  signed: ReadonlyMap<string, string>,
): string | undefined {
  const calls = idsIn(content, "server_tool_use", "id");
  const results = hostResults.flatMap((type) => idsIn(content, type, "tool_use_id"));
  const unknown = results.find((id) => !calls.includes(id));
  if (unknown) return `unexpected \`tool_use_id\` in a result: ${unknown}`;
  const open = calls.find((id) => !results.includes(id));
  if (open && isOver) return `\`server_tool_use\` without its result: ${open}`;
  if (statesIn(content).every((state) => signed.has(state))) return undefined;
  return "Invalid `encrypted_content` in `search_result` block";
}

function faultInBlock(block: Found, known: readonly string[], path: string): string | undefined {
  if (!known.includes(block.type)) return `${path}.type: Input tag '${block.type}' found`;
  if (block.type === "text" && block.text.trim() === "")
    return `${path}: text content blocks must contain non-whitespace text`;
  if (block.type === "image" && block.source.type === "base64") {
    if (!imageTypes.includes(block.source.media_type)) return `${path}.source.media_type: wrong`;
  }
  if (block.type === "tool_use" && !/^[a-zA-Z0-9_-]+$/.test(block.id))
    return `${path}.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
  if (block.type === "tool_use" && (typeof block.input !== "object" || Array.isArray(block.input)))
    return `${path}.input: Input should be a valid dictionary`;
  return undefined;
}

function idsIn(content: Found, type: string, name: string): string[] {
  if (!Array.isArray(content)) return [];
  return content.filter((block) => block.type === type).map((block) => block[name]);
}
