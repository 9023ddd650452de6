// Translates the turns of a Messages request into items of Responses.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { carriedIn } from "./carrier.ts";

/** The messages of a request as Responses items, in their order. */
export function itemsOf(messages: JsonValue | undefined): JsonObject[] {
  if (!Array.isArray(messages)) return [];
  return messages.filter(isJsonObject).flatMap(({ role, content }) => {
    switch (role) {
      case "assistant":
        return itemsOfAssistant(blocksOf(content));
      case "system":
        return messageOf("developer", blocksOf(content).map(inputPart));
      default:
        return itemsOfUser(blocksOf(content));
    }
  });
}

/** Content as blocks. A text is one of them. */
export function blocksOf(content: JsonValue | undefined): JsonObject[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content.filter(isJsonObject) : [];
}

/** Blocks of the same message stay together, except that results of calls are items of their own. */
function itemsOfUser(blocks: readonly JsonObject[]): JsonObject[] {
  const items: JsonObject[] = [];
  let parts: JsonObject[] = [];
  const say = () => {
    items.push(...messageOf("user", parts));
    parts = [];
  };
  for (const block of blocks) {
    if (block.type === "tool_result") {
      say();
      items.push(resultItem(block));
    } else parts.push(...inputParts(block));
  }
  say();
  return items;
}

function itemsOfAssistant(blocks: readonly JsonObject[]): JsonObject[] {
  const items: JsonObject[] = [];
  let texts: string[] = [];
  const say = () => {
    if (texts.length > 0) {
      const content = texts.map((text) => ({ type: "output_text", text, annotations: [] }));
      items.push({ type: "message", role: "assistant", content });
    }
    texts = [];
  };
  for (const block of blocks) {
    if (block.type === "text") {
      texts.push(`${block.text}`);
      continue;
    }
    say();
    if (block.type === "tool_use") items.push(callItem(block));
    else if (block.type === "thinking") items.push(...reasoningItem(block));
  }
  say();
  return items;
}

function messageOf(role: string, parts: readonly JsonObject[]): JsonObject[] {
  if (parts.length === 0) return [];
  return [{ type: "message", role, content: [...parts] }];
}

function callItem({ id, name, input }: JsonObject): JsonObject {
  const call = { call_id: id ?? "", name: name ?? "" };
  return { type: "function_call", ...call, arguments: JSON.stringify(input ?? {}) };
}

/** The item that a thinking block carries. Empty for a block of another model. */
function reasoningItem({ thinking, signature }: JsonObject): JsonObject[] {
  const carried = carriedIn(signature);
  if (!carried) return [];
  const summary = thinking ? [{ type: "summary_text", text: thinking }] : [];
  const { id, encrypted_content } = carried;
  const known = typeof id === "string" ? { id } : {};
  return [{ type: "reasoning", ...known, summary, encrypted_content: encrypted_content ?? null }];
}

/** A result of a call. Most servers take text alone, so that one of text stays that. */
function resultItem({ tool_use_id: id, content }: JsonObject): JsonObject {
  const parts = blocksOf(content).flatMap(inputParts);
  const isText = parts.every(({ type }) => type === "input_text");
  const output = isText ? parts.map(({ text }) => text).join("\n") : parts;
  return { type: "function_call_output", call_id: id ?? "", output };
}

/** A block of a user as parts of Responses. A document of several blocks has as many parts. */
export function inputParts(block: JsonObject): JsonObject[] {
  const source = isJsonObject(block.source) ? block.source : {};
  switch (block.type) {
    case "document":
      if (source.type === "content") {
        const head = [block.title, block.context].filter(isFilled).map(textPart);
        return [...head, ...blocksOf(source.content).flatMap(inputParts)];
      }
      return [inputPart(block)];
    case "search_result": {
      const texts = blocksOf(block.content).map(({ text }) => text);
      return [textPart([block.title, block.source, ...texts].filter(isFilled).join("\n"))];
    }
    default:
      return [inputPart(block)];
  }
}

function inputPart(block: JsonObject): JsonObject {
  const source = isJsonObject(block.source) ? block.source : {};
  if (block.type === "image") return { type: "input_image", image_url: source.image_url ?? "" };
  if (block.type !== "document") return textPart(block.text);
  if (source.type === "text") {
    return textPart([block.title, block.context, source.data].filter(isFilled).join("\n\n"));
  }
  return { type: "input_file", filename: source.filename ?? "", file_data: source.file_data ?? "" };
}

function textPart(text: JsonValue | undefined): JsonObject {
  return { type: "input_text", text: typeof text === "string" ? text : "" };
}

function isFilled(value: JsonValue | undefined): value is string {
  return typeof value === "string" && value !== "";
}
