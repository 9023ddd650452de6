// Decides whether the text model answers with a call or with text.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Random } from "../seed.ts";
import { type Conversation, heard } from "./conversation.ts";
import { fillSchema, type Material } from "./fill-schema.ts";
import { replyTo, topicOf } from "./reply.ts";

/** The builtin model's plan for a request. */
export type Plan =
  | { kind: "say"; text: string }
  | { kind: "call"; name: string; arguments: string };

/** Decides between a call and text, and finds either. */
export function planFor(body: JsonObject, talk: Conversation, random: Random): Plan {
  const material = { said: heard(talk), random };
  const tool = toolToCall(body, talk);
  if (tool) {
    const args = fillSchema(tool.parameters ?? {}, material);
    return {
      kind: "call",
      name: `${tool.name ?? ""}`,
      arguments: JSON.stringify(isJsonObject(args) ? args : {}),
    };
  }
  return { kind: "say", text: textFor(body, talk, material) };
}

/**
 * The function to call. It is the one that `tool_choice` names, any one where it requires a call, or the only one there is. There is
 * none where its result has just come.
 */
function toolToCall(body: JsonObject, talk: Conversation): JsonObject | undefined {
  const all = (Array.isArray(body.tools) ? body.tools : []).filter(isJsonObject);
  const functions = all.filter((tool) => tool.type === "function");
  const choice = body.tool_choice;
  if (choice === "none") return undefined;
  if (choice === "required") return mentioned(functions, talk) ?? functions[0];
  if (isJsonObject(choice) && choice.type === "function") {
    return functions.find((tool) => tool.name === choice.name);
  }
  const allowed = isJsonObject(choice) ? allowedOf(choice, functions) : functions;
  if (isJsonObject(choice) && choice.mode === "required") return allowed[0];
  return allowed.length === 1 && talk.results.length === 0 ? allowed[0] : undefined;
}

function allowedOf(choice: JsonObject, functions: JsonObject[]): JsonObject[] {
  if (!Array.isArray(choice.tools)) return [];
  const names = new Set(choice.tools.filter(isJsonObject).map(({ name }) => name));
  return functions.filter(({ name }) => names.has(name));
}

/** The function that the user mentions by its name. */
function mentioned(functions: readonly JsonObject[], talk: Conversation): JsonObject | undefined {
  const said = heard(talk).toLowerCase();
  return functions.find(({ name }) =>
    `${name}`
      .toLowerCase()
      .split(/[_\W]+/)
      .some((word) => word.length > 3 && said.includes(word)),
  );
}

function textFor(body: JsonObject, talk: Conversation, material: Material): string {
  const format = isJsonObject(body.text) ? body.text.format : undefined;
  const wanted = isJsonObject(format) ? format : {};
  const wantsSearch = hasSearch(body.tools);
  if (wanted.type === "json_schema") return JSON.stringify(fillSchema(wanted.schema, material));
  const text = replyTo(talk, material.random, { wantsSearch });
  if (wanted.type !== "json_object") return text;
  const turn = talk.said.length + talk.recalledTurns;
  return JSON.stringify({ topic: topicOf(material.said), turn, answer: text });
}

function hasSearch(tools: JsonValue | undefined): boolean {
  if (!Array.isArray(tools)) return false;
  return tools.some((tool) => isJsonObject(tool) && `${tool.type}`.startsWith("web_search"));
}
