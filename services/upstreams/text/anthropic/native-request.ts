// Makes the body for Anthropic of a request that came as Messages. Nothing is translated, and fields that the upstream may not
// get are left out.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { advancedFields, takesField } from "../../anthropic/betas.ts";
import { sourceOf } from "./source.ts";

/** Facts that a request of Messages needs at an upstream that speaks them. */
export interface NativeOptions {
  betas: readonly string[];
  passParameters: readonly string[];
  dropsBlocks: boolean;
}

/** Properties that pass as they came: those of `MessageCreateParams` of the SDK, 1.14, that cost no more than tokens. */
const passed: readonly string[] = [
  ...["tools", "tool_choice", "system", "messages", "stop_sequences", "cache_control"],
  ...["service_tier"],
];
/** Settings of sampling that only some models take. The catalog names them. */
const sampling: readonly string[] = ["temperature", "top_p", "top_k"];

/**
 * The body of a request of Messages for an upstream that speaks them, without `model`, `max_tokens` and `stream`. Known properties pass
 * unchanged, and media in the form in which they were verified. The body must have passed the checks of `text/request/messages.ts`.
 */
export function nativeBody(body: JsonObject, options: NativeOptions): JsonObject {
  const { passParameters } = options;
  const isPassed = (name: string) => passParameters.includes(name) || passParameters.includes("*");
  const names = [...passed, ...sampling.filter(isPassed)];
  const found = names.filter((name) => (body[name] ?? null) !== null);
  const kept: JsonObject = Object.fromEntries(found.map((name) => [name, body[name] ?? null]));
  if (Array.isArray(kept.tools)) kept.tools = toolsOf(kept.tools, options.betas);
  if (Array.isArray(kept.tools) && kept.tools.length === 0) delete kept.tools;
  if (!kept.tools) delete kept.tool_choice;
  if (Array.isArray(kept.system) && kept.system.length === 0) delete kept.system;
  kept.messages = messagesOf(body.messages, takesField(options.betas, "mid-conversation-"));
  const config = outputConfigOf(body);
  if (config) kept.output_config = config;
  const thinking = thinkingOf(body, kept.messages, options);
  if (thinking) kept.thinking = thinking;
  const edits = body.context_management;
  if (isJsonObject(edits) && takesField(options.betas, "context-management-")) {
    kept.context_management = edits;
  }
  return kept;
}

/** The effort by its name at the model. The format stays. */
function outputConfigOf({ output_config: config, reasoning }: JsonObject): JsonObject | undefined {
  if (!isJsonObject(config)) return undefined;
  const { effort: asked, ...rest } = config;
  const effort = asked && isJsonObject(reasoning) ? reasoning.effort : undefined;
  const kept = { ...rest, ...(effort ? { effort } : {}) };
  return Object.keys(kept).length > 0 ? kept : undefined;
}

/** The caller's thinking. Where it chose nothing for thinking from behind another beginning, that is dropped. */
function thinkingOf(
  { thinking }: JsonObject,
  messages: JsonValue,
  { betas, dropsBlocks }: NativeOptions,
): JsonValue | undefined {
  const asked = isJsonObject(thinking) ? thinking : undefined;
  const takes = takesField(betas, "thinking-binding-controls-");
  if (asked?.block_binding !== undefined) {
    const { block_binding: _, ...rest } = asked;
    return takes ? asked : rest;
  }
  const isBound = dropsBlocks && takes && asked?.type !== "disabled" && hasThinking(messages);
  if (!isBound) return asked;
  const block_binding = { prefix_mismatch_behavior: "drop_block" };
  return { type: "adaptive", ...asked, block_binding };
}

function hasThinking(messages: JsonValue): boolean {
  const all = Array.isArray(messages) ? messages.filter(isJsonObject) : [];
  return all.some(
    ({ content }) =>
      Array.isArray(content) &&
      content.some((one) => isJsonObject(one) && `${one.type}`.endsWith("thinking")),
  );
}

/** The tools. Fields of a feature that the upstream does not have are left out. */
function toolsOf(tools: JsonValue[], betas: readonly string[]): JsonValue[] {
  if (takesField(betas, "advanced-tool-use-")) return tools;
  return tools.map((tool) => {
    if (!isJsonObject(tool)) return tool;
    const kept = Object.entries(tool).filter(([name]) => !advancedFields.includes(name));
    return Object.fromEntries(kept);
  });
}

/** The messages, with their media in the form of Messages again. Without turns of the system, later instructions are the user's. */
function messagesOf(messages: JsonValue | undefined, takesSystem: boolean): JsonValue[] {
  const all = Array.isArray(messages) ? messages : [];
  return all.map((message) => {
    if (!isJsonObject(message) || message.role === "assistant") return message;
    if (message.role === "system" && !takesSystem) return { ...message, role: "user" };
    return withContent(message);
  });
}

/** A message or a block with blocks within, whose media are in the form of Messages. The same object where it holds none. */
function withContent(holder: JsonObject): JsonObject {
  const { content } = holder;
  if (!Array.isArray(content)) return holder;
  const blocks = content.map((block) => (isJsonObject(block) ? blockOf(block) : block));
  return blocks.some((block, at) => block !== content[at])
    ? { ...holder, content: blocks }
    : holder;
}

function blockOf(block: JsonObject): JsonObject {
  const { source } = block;
  if (!isJsonObject(source)) return withContent(block);
  const uri = source.image_url ?? source.file_data ?? source.file_url;
  if (typeof uri === "string") return { ...block, source: sourceOf(uri) };
  const within = withContent(source);
  return within === source ? block : { ...block, source: within };
}
