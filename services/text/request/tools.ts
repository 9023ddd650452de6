// Checks the tools of a request, and notes what they do to its price: who runs them, and who describes them. `messages-tools.ts`
// adds Anthropic's own.

import { optionalArray, requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxTools } from "../base/limits.ts";
import { fieldOf, itemsAtOnce, objectAt, unsupported } from "./fields.ts";
import type { OnTool } from "./operator-state.ts";

/** Tools whose calls the caller itself carries out. Every other tool may put text of its own into the input. */
const callerTools = new Set([
  "function",
  "custom",
  "namespace",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview",
]);

/**
 * Those of them that the upstream describes to its model in its own words. Known descriptions have 250 to 1,500 tokens, once for each
 * type. A request names only the type.
 */
const describedTools = ["local_shell", "apply_patch", "computer", "computer_use_preview"];
/** Tokens of such a description. Those of Anthropic's have 245 to 1,234. */
export const descriptionTokens = 1_536;

/** Tokens that the upstream adds for the tools of a request. */
export function toolTokensOf({ described }: CheckedTools, inItems: readonly string[] = []): number {
  if (described.length + inItems.length === 0) return 0;
  return new Set([...described, ...inItems]).size * descriptionTokens;
}

/** Facts about the tools of a request that decide its price. */
export interface CheckedTools {
  count: number;
  /** True where the upstream carries out at least one. */
  hosted: boolean;
  /** Types that the upstream describes to its model itself. */
  described: string[];
  /** Types that the upstream carries out. Absent: none. */
  hostedTypes?: Set<string>;
}

/** Notes the effect of a tool's type on the price. */
function noteType(type: string, found: CheckedTools): void {
  if (!callerTools.has(type)) {
    found.hosted = true;
    found.hostedTypes ??= new Set();
    found.hostedTypes.add(type);
  }
  const isNew = describedTools.includes(type) && !found.described.includes(type);
  if (isNew) found.described.push(type);
}

/** Does the model take tools of this type? */
export function takesTool(spec: ChatSpec, type: string): boolean {
  return spec.tools.includes("*") || spec.tools.includes(type);
}

/**
 * Checks each tool of a body by its type alone, at any place, and notes in `found` one that the upstream carries out. It covers places
 * that no other check reaches: a `tool_choice`, a part of a message, a tool within a tool.
 */
export function toolNote(spec: ChatSpec, found: CheckedTools): OnTool {
  return (type, path) => {
    // It only lists the tools that may be called. Those are in the request themselves.
    if (type === "allowed_tools") return;
    if (!takesTool(spec, type)) refuseTool(path(), spec);
    noteType(type, found);
  };
}

/**
 * Checks `tools`, and the type of `tool_choice`. Items are forwarded unchanged. `api` chat: a function's name is one level deeper.
 * Refuses tools that the model does not take with UNSUPPORTED_PARAMETER at `tools[i].type`.
 */
export function* checkTools(
  body: JsonObject,
  spec: ChatSpec,
  api: "responses" | "chat",
): Generator<void, CheckedTools> {
  const found: CheckedTools = { count: 0, hosted: false, described: [] };
  const tools = optionalArray(body, "tools");
  if (tools) yield* checkToolList(tools, "tools", spec, api, found);
  const choice = fieldOf(body, "tool_choice");
  if (choice !== undefined && typeof choice !== "string" && !isJsonObject(choice)) {
    refuse(ErrorReason.INVALID_TYPE, { param: "tool_choice" });
  }
  return found;
}

/** Checks tools at any place: in the request, in an item or message of its input, in a namespace. Adds their facts to `found`. */
function* checkToolList(
  tools: readonly JsonValue[],
  param: string,
  spec: ChatSpec,
  api: "responses" | "chat",
  found: CheckedTools,
): Generator<void, void> {
  if (found.count + tools.length > maxTools) {
    refuse(ErrorReason.INVALID_VALUE, {
      param,
      message: `A request may have at most ${maxTools} tools.`,
    });
  }
  for (const [index, value] of tools.entries()) {
    if (index > 0 && index % itemsAtOnce === 0) yield;
    const path = `${param}[${index}]`;
    const tool = objectAt(value, path);
    const type = requiredString(tool, "type", { min: 1 }, `${path}.type`);
    if (!takesTool(spec, type)) refuseTool(`${path}.type`, spec);
    found.count++;
    noteType(type, found);
    if (type === "function") checkFunction(tool, path, api);
    for (const [holder, at] of [
      [tool, path],
      [tool.function, `${path}.function`],
      [tool.custom, `${path}.custom`],
    ] as const) {
      if (isJsonObject(holder)) yield* checkToolsIn(holder, at, spec, api, found);
    }
  }
}

/** Checks the `tools` of an item, a message or a namespace, if it has some. */
export function checkToolsIn(
  holder: JsonObject,
  param: string,
  spec: ChatSpec,
  api: "responses" | "chat",
  found: CheckedTools,
): Iterable<void> {
  if (fieldOf(holder, "tools") === undefined) return nothing;
  const path = `${param}.tools`;
  return checkToolList(optionalArray(holder, "tools", path) ?? [], path, spec, api, found);
}

const nothing: Iterable<void> = [];

function checkFunction(tool: JsonObject, param: string, api: "responses" | "chat"): void {
  if (api === "responses") {
    requiredString(tool, "name", { min: 1 }, `${param}.name`);
    return;
  }
  const described = fieldOf(tool, "function");
  if (described === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: `${param}.function` });
  }
  const path = `${param}.function`;
  requiredString(objectAt(described, path), "name", { min: 1 }, `${path}.name`);
}

/** Refuses a tool that the model does not take. */
export function refuseTool(param: string, spec: ChatSpec): never {
  unsupported(
    param,
    spec.tools.length > 0
      ? `The model takes these tools: ${spec.tools.join(", ")}.`
      : "The model takes no tools. Leave them out.",
  );
}
