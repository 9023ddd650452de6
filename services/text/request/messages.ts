// Checks a Messages request, and makes the body for the upstream. The other files with this beginning in their names check parts
// of it.

import { optionalObject, requiredString } from "#common/words/body.ts";
import { nameByBeginning } from "#common/words/conversation.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import {
  isTooMuch,
  maxStopCharacters,
  maxStops,
  stopsOf,
} from "../../upstreams/text/chat/stops.ts";
import { leastWishedTokens, maxTools, messagesToolTokens } from "../base/limits.ts";
import type { CheckedBody } from "./checked.ts";
import { fieldOf, filledArray, itemsAtOnce, objectAt, outputLimit, unsupported } from "./fields.ts";
import {
  argumentBytesOf,
  checkBlocks,
  type FoundBlocks,
  newFoundBlocks,
  noteNames,
} from "./messages-blocks.ts";
import { checkBodyFields } from "./messages-fields.ts";
import { checkNative, keepTurns } from "./messages-native.ts";
import { checkThinking } from "./messages-thinking.ts";
import { checkOwnTool } from "./messages-tools.ts";
import { descriptionTokens, refuseTool, takesTool } from "./tools.ts";

/** Fields of Messages that name state or money of the operator's account at Anthropic. */
const operators = ["container", "mcp_servers", "fallbacks", "fallback_credit_token"] as const;
const roles: readonly string[] = ["user", "assistant", "system"];
const choices: readonly string[] = ["auto", "any", "tool", "none"];
/** Properties of a tool that are sent. */
const toolNames: ReadonlySet<string> = new Set([
  ...["type", "name", "description", "input_schema", "strict"],
]);

/** Facts about a request beside its body and its model. */
export interface MessagesTerms {
  developerPrompt: string;
  /** The upstreams that speak Messages themselves, if it goes to those alone. */
  natives: readonly Upstream[];
  /** The bytes of the body. */
  bytes: Uint8Array | undefined;
}

/**
 * Checks a body of `POST /messages` against its model, and makes the body for the upstream out of it. `reasoning` is added: the
 * thinking that is asked for, in the words of Responses.
 */
export function* checkMessages(
  body: JsonObject,
  spec: ChatSpec,
  { developerPrompt, natives, bytes }: MessagesTerms,
): Generator<void, CheckedBody> {
  const isNative = natives.length > 0;
  if (bytes) yield* keepTurns(body, bytes);
  for (const name of operators) {
    if (fieldOf(body, name) !== undefined) unsupported(name);
  }
  checkBodyFields(body);
  refuseCompaction(body);
  const messages = filledArray(fieldOf(body, "messages"), "messages");
  if (fieldOf(body, "max_tokens") === undefined) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "max_tokens" });
  }
  const leastOutput = checkThinking(body, spec);
  const maxOutputTokens = outputLimit(body, "max_tokens", spec, isNative ? 0 : 1) ?? 1;
  checkStops(body);
  const found = newFoundBlocks(spec, natives);
  const tools = checkTools(body, spec, found);
  const system = checkSystem(body, found);
  for (const [index, value] of messages.entries()) {
    if (index > 0 && index % itemsAtOnce === 0) yield;
    checkMessage(value, index, messages, found);
  }
  const argumentBytes = yield* argumentBytesOf(found);
  if (isNative) checkNative(body, spec);
  const last = messages.at(-1);
  if (!isNative && isJsonObject(last) && last.role === "assistant") {
    unsupported(
      `messages[${messages.length - 1}].role`,
      "The conversation must end with a message of the user. This model does not go on with a text.",
    );
  }
  const user = optionalObject(body, "metadata")?.user_id;
  // Claude Code names its session there. Nothing else of the request is the same in all of a session.
  body.prompt_cache_key = typeof user === "string" && user !== "" ? user : nameByBeginning(body);
  delete body.metadata;
  body.system = withPrompt(system, developerPrompt);
  body.store = false;
  delete body.service_tier;
  if (spec.serviceTier) body.service_tier = spec.serviceTier;
  return {
    body,
    callerInstructions: null,
    hosted: found.hosted.size > 0 || found.hasHostResults,
    hostedTypes: [...found.hosted],
    toolTokens:
      isNative && tools > 0 ? messagesToolTokens + found.described.size * descriptionTokens : 0,
    nameBytes: found.names.bytes + argumentBytes,
    maxOutputTokens,
    ...(maxOutputTokens > leastWishedTokens && {
      mayFallTo: Math.min(maxOutputTokens, Math.max(leastWishedTokens, leastOutput)),
    }),
    images: found.images,
    files: found.files,
    opaque: found.opaque,
    leftOut: [...found.leftOut],
    items: tools + system.length + messages.length + found.count,
    inputParam: "messages",
  };
}

/** Compactions at Anthropic use tokens that its usage leaves out of the sums. */
function refuseCompaction(body: JsonObject): void {
  const edits = optionalObject(body, "context_management")?.edits;
  for (const [index, edit] of Array.isArray(edits) ? edits.entries() : []) {
    const param = `context_management.edits[${index}].type`;
    if (!isJsonObject(edit)) continue;
    if (!requiredString(edit, "type", { min: 1 }, param).startsWith("compact")) continue;
    unsupported(
      param,
      "Compaction at the model's side is not supported. Clients compact a conversation themselves.",
    );
  }
}

function checkStops(body: JsonObject): void {
  const stops = fieldOf(body, "stop_sequences");
  if (stops === undefined || !isTooMuch(stopsOf(stops))) return;
  const bounds = `at most ${maxStops} sequences of at most ${maxStopCharacters} characters`;
  unsupported("stop_sequences", `The parameter 'stop_sequences' may have ${bounds}.`);
}

/** Checks `tools` and `tool_choice`. Answers the number of tools. */
function checkTools(body: JsonObject, spec: ChatSpec, found: FoundBlocks): number {
  const tools = fieldOf(body, "tools") ?? [];
  if (!Array.isArray(tools)) refuse(ErrorReason.INVALID_TYPE, { param: "tools" });
  if (tools.length > maxTools) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: "tools",
      message: `A request may have at most ${maxTools} tools.`,
    });
  }
  for (const [index, value] of tools.entries()) {
    const param = `tools[${index}]`;
    checkTool(objectAt(value, param), param, spec, found);
  }
  const choice = optionalObject(body, "tool_choice");
  if (!choice) return tools.length;
  const type = requiredString(choice, "type", { min: 1, oneOf: choices }, "tool_choice.type");
  if (type === "tool") requiredString(choice, "name", { min: 1 }, "tool_choice.name");
  return tools.length;
}

function checkTool(tool: JsonObject, param: string, spec: ChatSpec, found: FoundBlocks): void {
  const type = fieldOf(tool, "type") ?? "custom";
  if (type === "custom") {
    if (!takesTool(spec, "function")) refuseTool(`${param}.type`, spec);
    const schema = `${param}.input_schema`;
    objectAt(fieldOf(tool, "input_schema") ?? missing(schema), schema);
  } else checkOwnTool(tool, param, found);
  requiredString(tool, "name", { min: 1 }, `${param}.name`);
  const callers = fieldOf(tool, "allowed_callers");
  if (Array.isArray(callers) && !callers.includes("direct")) {
    unsupported(`${param}.allowed_callers`, "Tools are called by the model itself: 'direct'.");
  }
  noteNames(tool, toolNames, "tools", found);
}

function missing(param: string): never {
  return refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
}

/** The blocks of the system prompt. */
function checkSystem(body: JsonObject, found: FoundBlocks): JsonObject[] {
  const system = fieldOf(body, "system") ?? [];
  if (typeof system === "string") return system === "" ? [] : [{ type: "text", text: system }];
  return checkBlocks(system, "system", "system", found);
}

/** The configured prompt stands before the caller's, and behind the attribution of Claude Code, which Anthropic reads in first place. */
function withPrompt(system: JsonObject[], developerPrompt: string): JsonObject[] {
  if (developerPrompt === "") return system;
  const prompt = { type: "text", text: developerPrompt };
  const isNamed = isAttribution(system[0]);
  return isNamed ? [...system.slice(0, 1), prompt, ...system.slice(1)] : [prompt, ...system];
}

function isAttribution(block: JsonObject | undefined): boolean {
  return `${block?.text}`.startsWith("x-anthropic-billing-header:");
}

function checkMessage(
  value: JsonValue,
  index: number,
  messages: readonly JsonValue[],
  found: FoundBlocks,
): void {
  const param = `messages[${index}]`;
  const message = objectAt(value, param);
  const role = requiredString(message, "role", { min: 1, oneOf: roles }, `${param}.role`);
  const before = messages[index - 1];
  if (role === "system" && !(isJsonObject(before) && before.role === "user")) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: `${param}.role`,
      message: "A system message may stand only right behind a message of the user.",
    });
  }
  const content = fieldOf(message, "content") ?? missing(`${param}.content`);
  const filled =
    typeof content === "string" ? content : checkBlocks(content, role, `${param}.content`, found);
  const isLastOfModel = role === "assistant" && index === messages.length - 1;
  if (filled.length === 0 && !isLastOfModel) refuseEmpty(index);
}

/** In Anthropic's words, which clients know. */
function refuseEmpty(index: number): never {
  const rule =
    "all messages must have non-empty content except for the optional final assistant message";
  const param = `messages[${index}].content`;
  return refuse(ErrorReason.INVALID_VALUE, { param, message: `messages.${index}: ${rule}` });
}
