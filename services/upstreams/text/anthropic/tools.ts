// Translates tools, the choice among them, and the input of their calls between Responses and Messages.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { invalid, untranslatable } from "./untranslatable.ts";

/** A tool as its caller knows it. */
export interface CallersTool {
  name: string;
  namespace?: string;
  /** Its input is a text, and not an object. */
  isCustom?: true;
}

/** The tools of a request, by their names in Messages. */
export type ToolNames = ReadonlyMap<string, CallersTool>;

/** Tools in the form of Messages. */
export interface TakenTools {
  tools: JsonObject[];
  names: Map<string, CallersTool>;
}

/** Names that Anthropic takes. */
const toolName = /^[a-zA-Z0-9_-]{1,128}$/;
/** The only field of a custom tool's input. */
const textField = "input";
const textSchema = {
  type: "object",
  properties: { [textField]: { type: "string" } },
  required: [textField],
};

/** The name in Messages of a tool within a namespace, or of one without. */
export function nameThere(name: string, namespace?: JsonValue): string {
  return typeof namespace === "string" && namespace !== "" ? `${namespace}__${name}` : name;
}

/** The input of a custom tool's call, from its text. */
export function customInput(text: JsonValue | undefined): JsonObject {
  return { [textField]: typeof text === "string" ? text : "" };
}

/** The text of a custom tool's call, from its input as JSON. Text that is no such input is passed on as it is. */
export function customText(json: string): string {
  try {
    const input: unknown = JSON.parse(json);
    const text = isJsonObject(input) ? input[textField] : undefined;
    return typeof text === "string" ? text : json;
  } catch {
    return json;
  }
}

/** Adds the tools of a list to those of the request. `leftOut` gets the names of fields that have no counterpart. */
export function takeTools(
  list: JsonValue | undefined,
  param: string,
  taken: TakenTools,
  leftOut: Set<string>,
  namespace?: string,
): void {
  for (const [index, tool] of (Array.isArray(list) ? list : []).entries()) {
    if (!isJsonObject(tool)) continue;
    const path = `${param}[${index}]`;
    if (tool.type === "namespace" && namespace === undefined && typeof tool.name === "string") {
      takeTools(tool.tools, `${path}.tools`, taken, leftOut, tool.name);
    } else takeTool(tool, path, taken, leftOut, namespace);
  }
}

function takeTool(
  tool: JsonObject,
  path: string,
  { tools, names }: TakenTools,
  leftOut: Set<string>,
  namespace: string | undefined,
): void {
  const isCustom = tool.type === "custom";
  if (!isCustom && tool.type !== "function") {
    untranslatable(`${path}.type`, "The model takes only function and custom tools.");
  }
  if (isCustom && isJsonObject(tool.format) && tool.format.type !== "text") {
    untranslatable(`${path}.format`, "The model keeps to no grammar. Leave the format out.");
  }
  const { allowed_callers: callers, defer_loading: isDeferred } = tool;
  if (Array.isArray(callers) && !callers.includes("direct")) {
    untranslatable(`${path}.allowed_callers`, "The model calls its tools itself.");
  }
  if (callers) leftOut.add("tools.allowed_callers");
  if (isDeferred === true) leftOut.add("tools.defer_loading");
  const own = typeof tool.name === "string" ? tool.name : "";
  const name = nameThere(own, namespace);
  if (!toolName.test(name)) {
    const rule = "1 to 128 letters, digits, '_' and '-', with its namespace";
    invalid(`${path}.name`, `The model takes names of tools with ${rule}.`);
  }
  if (names.has(name)) invalid(`${path}.name`, "Another tool of the request has this name.");
  names.set(name, {
    name: own,
    ...(namespace !== undefined && { namespace }),
    ...(isCustom && { isCustom }),
  });
  tools.push({
    name,
    ...(typeof tool.description === "string" && { description: tool.description }),
    input_schema: isCustom ? textSchema : (tool.parameters ?? { type: "object", properties: {} }),
    ...(tool.strict === true && { strict: true }),
  });
}

/** The tools and the choice among them. */
export interface ChosenTools {
  tools: JsonObject[];
  choice: JsonObject | undefined;
}

/** The choice of tools in the form of Messages. A list of allowed tools leaves only those. */
export function chosenTools(
  { tool_choice: choice, parallel_tool_calls: isParallel }: JsonObject,
  { tools, names }: TakenTools,
  refusesForced: boolean,
): ChosenTools {
  if (tools.length === 0) return { tools, choice: undefined };
  const { type, ...rest } = choiceOf(choice, names);
  const isForced = type === "any" || type === "tool";
  if (isForced && refusesForced) {
    const message = "The model cannot be made to call a tool. Use auto or none.";
    untranslatable("tool_choice", message);
  }
  const isOne = isParallel === false && type !== "none";
  const made: JsonObject = { type, ...rest, ...(isOne && { disable_parallel_tool_use: true }) };
  const isPlain = type === "auto" && !isOne;
  return { tools: allowedOf(choice, tools), choice: isPlain ? undefined : made };
}

function choiceOf(
  choice: JsonValue | undefined,
  names: ToolNames,
): { type: string; name?: string } {
  const word = isJsonObject(choice)
    ? choice.type === "allowed_tools"
      ? (choice.mode ?? "auto")
      : "named"
    : (choice ?? "auto");
  if (word === "auto" || word === "none") return { type: word };
  if (word === "required") return { type: "any" };
  const name = isJsonObject(choice) ? namedIn(choice) : undefined;
  if (name === undefined || !names.has(name)) {
    untranslatable(
      "tool_choice",
      "The model takes auto, none, required, or a tool of the request.",
    );
  }
  return { type: "tool", name };
}

function allowedOf(choice: JsonValue | undefined, tools: JsonObject[]): JsonObject[] {
  if (!isJsonObject(choice) || choice.type !== "allowed_tools") return tools;
  const list = Array.isArray(choice.tools) ? choice.tools.filter(isJsonObject) : [];
  const allowed = new Set<JsonValue | undefined>(list.map(namedIn));
  return tools.filter(({ name }) => allowed.has(name));
}

function namedIn({ type, name, namespace }: JsonObject): string | undefined {
  const isTool = type === "function" || type === "custom";
  return isTool && typeof name === "string" ? nameThere(name, namespace) : undefined;
}
