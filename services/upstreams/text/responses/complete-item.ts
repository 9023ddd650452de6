// Adds the fields to an item or a part of a Responses answer that servers leave out and clients need.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/** The facts that completing items needs. */
export interface ItemFacts {
  /** A new id with this prefix. */
  newId: (prefix: string) => string;
}

const idPrefixes: Readonly<Record<string, string>> = {
  message: "msg",
  function_call: "fc",
  custom_tool_call: "ctc",
  reasoning: "rs",
  compaction: "cmp",
  web_search_call: "ws",
};

/** Prefix of an item's id by its type. */
export function idPrefixOf(type: string): string {
  return (Object.hasOwn(idPrefixes, type) && idPrefixes[type]) || "item";
}

/** Is it a string that is not empty? */
export function isText(value: JsonValue | undefined): value is string {
  return typeof value === "string" && value !== "";
}

/**
 * An output item with the fields that clients rely on. The same object where no field was missing. Items of unknown types get an id
 * alone.
 */
export function completeItem(item: JsonObject, facts: ItemFacts, status = "completed"): JsonObject {
  const type = isText(item.type) ? item.type : "message";
  const missing: JsonObject = {};
  if (item.type !== type) missing.type = type;
  if (!isText(item.id)) missing.id = facts.newId(idPrefixOf(type));
  switch (type) {
    case "message":
      addMissing(missing, item, { status, role: "assistant" });
      completeContent(missing, item);
      break;
    case "function_call":
      addMissing(missing, item, { status, name: "", arguments: "" });
      if (!isText(item.call_id)) missing.call_id = facts.newId("call");
      break;
    case "custom_tool_call":
      addMissing(missing, item, { status, name: "", input: "" });
      if (!isText(item.call_id)) missing.call_id = facts.newId("call");
      break;
    case "reasoning":
      addMissing(missing, item, { summary: [] });
      break;
  }
  return hasNames(missing) ? { ...item, ...missing } : item;
}

/** A content part with the arrays that clients rely on. The same object where none was missing. */
export function completePart(part: JsonObject): JsonObject {
  const missing: JsonObject = {};
  if (part.type === "output_text") {
    if (typeof part.text !== "string") missing.text = "";
    if (!Array.isArray(part.annotations)) missing.annotations = [];
    if (!Array.isArray(part.logprobs)) missing.logprobs = [];
  } else if (part.type === "refusal" && typeof part.refusal !== "string") {
    missing.refusal = "";
  } else if (part.type === "reasoning_text" && typeof part.text !== "string") {
    missing.text = "";
  }
  return hasNames(missing) ? { ...part, ...missing } : part;
}

function completeContent(missing: JsonObject, item: JsonObject): void {
  const { content } = item;
  if (typeof content === "string") {
    missing.content = [completePart({ type: "output_text", text: content })];
  } else if (!Array.isArray(content)) {
    missing.content = [];
  } else {
    const completed = content.map((part) => (isJsonObject(part) ? completePart(part) : part));
    if (completed.some((part, i) => part !== content[i])) missing.content = completed;
  }
}

function addMissing(missing: JsonObject, item: JsonObject, defaults: JsonObject): void {
  for (const [name, value] of Object.entries(defaults)) {
    if (item[name] === undefined || item[name] === null) missing[name] = value;
  }
}

function hasNames(object: JsonObject): boolean {
  for (const _ in object) return true;
  return false;
}
