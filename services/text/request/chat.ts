// Checks a Chat Completions request, and makes the body for the upstream. `responses.ts` and `messages.ts` do it for the other
// protocols.

import {
  optionalArray,
  optionalObject,
  optionalString,
  requiredString,
} from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { opaqueIn } from "../../upstreams/text/opaque.ts";
import { CalledNames } from "./called-names.ts";
import type { CheckedBody, FilePart, OpaquePart } from "./checked.ts";
import {
  checkMetadata,
  fieldOf,
  filledArray,
  instructionsOf,
  itemsAtOnce,
  objectAt,
  outputLimit,
  unsupported,
} from "./fields.ts";
import { checkChatFile, checkSound, notText } from "./file-parts.ts";
import { keepStateOut, maxLeftOut, noFiles, settleOperators } from "./operator-state.ts";
import { resolveEffort } from "./reasoning.ts";
import { checkTools, checkToolsIn, takesTool, toolNote, toolTokensOf } from "./tools.ts";

const roles: readonly string[] = ["system", "developer", "user", "assistant", "tool"];
/** Fields of parts that become text. */
const partNames: ReadonlySet<string> = new Set(["type", "text", "refusal"]);

/** Checks a body of `POST /chat/completions` against its model, and makes the body for the upstream out of it. */
export function* checkChat(
  body: JsonObject,
  spec: ChatSpec,
  developerPrompt: string,
): Generator<void, CheckedBody> {
  settleOperators(body, spec);
  const messages = filledArray(fieldOf(body, "messages"), "messages");
  const tools = yield* checkTools(body, spec, "chat");
  /** Fields of parts that are lost, because only the text of a part is sent. */
  const lost = new Set<string>();
  const files: FilePart[] = [];
  const opaque: OpaquePart[] = [];
  const names = new CalledNames();
  for (const [index, value] of messages.entries()) {
    if (index > 0 && index % itemsAtOnce === 0) yield;
    const param = `messages[${index}]`;
    const message = objectAt(value, param);
    checkMessage(message, param, spec, files, lost);
    names.noteMessage(message);
    noteOpaque(message, param, opaque);
    yield* checkToolsIn(message, param, spec, "chat", tools);
  }
  checkOneChoice(body);
  checkMetadata(body);
  checkTextOnly(body);
  resolveEffort(body, "reasoning_effort", "reasoning_effort", spec);
  // Not a field of chat's own, but upstreams take it, and a translated request has it.
  if (isJsonObject(body.reasoning)) {
    resolveEffort(body.reasoning, "effort", "reasoning.effort", spec);
  }
  optionalObject(body, "response_format");
  const legacy = optionalArray(body, "functions") ?? [];
  if (legacy.length > 0 && !takesTool(spec, "function")) unsupported("functions");
  const searches = optionalObject(body, "web_search_options") !== undefined;
  if (searches && !takesTool(spec, "web_search")) unsupported("web_search_options");
  const maxOutputTokens = chatOutputLimit(body, spec);
  checkStop(body);
  if (body.stream !== true) delete body.stream_options;
  const looked = { onTool: toolNote(spec, tools), passParameters: spec.passParameters };
  // Chat takes no images, so none of the account's files are in it.
  const leftOut = yield* keepStateOut(body, { ourFiles: noFiles, ...looked });
  for (const name of lost) leftOut.push(`messages.content.${name}`);
  const instructions = instructionsOf(
    developerPrompt,
    optionalString(body, "instructions") ?? null,
  );
  delete body.instructions;
  if (instructions !== "") {
    body.messages = [{ role: "system", content: instructions }, ...messages];
  }
  return {
    body,
    callerInstructions: null,
    hosted: tools.hosted || searches,
    hostedTypes: [...(tools.hostedTypes ?? []), ...(searches ? ["web_search"] : [])],
    toolTokens: toolTokensOf(tools),
    nameBytes: names.bytes,
    maxOutputTokens,
    images: [],
    files,
    opaque,
    leftOut,
    items: tools.count + legacy.length + messages.length,
    inputParam: "messages",
  };
}

function checkMessage(
  message: JsonObject,
  param: string,
  spec: ChatSpec,
  files: FilePart[],
  lost: Set<string>,
): void {
  const role = requiredString(message, "role", { min: 1, oneOf: roles }, `${param}.role`);
  if (role === "tool") {
    requiredString(message, "tool_call_id", { min: 1 }, `${param}.tool_call_id`);
  }
  const calls = checkToolCalls(message, param);
  // It refers to audio that would be stored at the upstream.
  if (fieldOf(message, "audio") !== undefined) unsupported(`${param}.audio`);
  const content = fieldOf(message, "content");
  const isEmpty = content === undefined || (Array.isArray(content) && content.length === 0);
  if (isEmpty && role === "assistant") {
    // Histories hold turns of a model without text. Servers take null for those only beside another field.
    message.content = calls > 0 || hasSubstitute(message) ? null : "";
    return;
  }
  const isUser = role === "user";
  message.content = contentOf(content, `${param}.content`, lost, (part, type, path) => {
    if (isUser && type === "file") files.push(checkChatFile(part, path, spec));
    else if (isUser && type === "input_audio") files.push(checkSound(part, path, spec, notText));
    else refuse(ErrorReason.UNSUPPORTED_CONTENT_TYPE, { param: `${path}.type`, message: notText });
  });
}

/**
 * Notes sealed reasoning of earlier turns. Clients send all that a conversation has, also after a change of its model. State that
 * another upstream made, or that another account got, is left out. Servers do the same with state that is not theirs.
 */
function noteOpaque(message: JsonObject, param: string, opaque: OpaquePart[]): void {
  if (message.reasoning_details === undefined) return;
  for (const value of opaqueIn(message.reasoning_details)) {
    opaque.push({ value, param: `${param}.reasoning_details`, isOptional: true });
  }
}

/** Takes sealed reasoning out of a chat's messages, and out of the items of a response's input. Changes the body. */
export function leaveStateOut(body: JsonObject, foreign: ReadonlySet<string>): void {
  const isForeign = (detail: JsonValue) => opaqueIn(detail).some((value) => foreign.has(value));
  if (Array.isArray(body.input)) body.input = body.input.filter((item) => !isForeign(item));
  const { messages } = body;
  for (const message of Array.isArray(messages) ? messages.filter(isJsonObject) : []) {
    const details = message.reasoning_details ?? null;
    if (Array.isArray(details)) {
      message.reasoning_details = details.filter((detail) => !isForeign(detail));
    } else if (isForeign(details)) delete message.reasoning_details;
  }
}

/** An assistant's turn may consist of a refusal, or of a call in the older form. */
function hasSubstitute(message: JsonObject): boolean {
  return (
    fieldOf(message, "refusal") !== undefined || fieldOf(message, "function_call") !== undefined
  );
}

/** Checks a part that is not text, or refuses it. */
type CheckPart = (part: JsonObject, type: string, param: string) => void;

/** Content as text. An array is joined, and beside files it stays in parts. `lost` gets the other fields of text parts. */
function contentOf(
  content: JsonValue | undefined,
  param: string,
  lost: Set<string>,
  checkOther: CheckPart,
): string | JsonObject[] {
  if (content === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) refuse(ErrorReason.INVALID_TYPE, { param });
  if (content.length === 0) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  const parts = content.map((part, index) => {
    if (isJsonObject(part) && partNames.has(`${part.type}`)) {
      for (const name in part) {
        if (!partNames.has(name) && lost.size < maxLeftOut) lost.add(name);
      }
    }
    return isPlainText(part) ? part.text : partOf(part, `${param}[${index}]`, checkOther);
  });
  const isText = (part: string | JsonObject) => typeof part === "string";
  if (parts.every(isText)) return parts.join("");
  return parts.map((part) => (isText(part) ? { type: "text", text: part } : part));
}

function isPlainText(part: JsonValue): part is { type: string; text: string } {
  return isJsonObject(part) && part.type === "text" && typeof part.text === "string";
}

/** The text of a text part, or of a model's refusal in an earlier turn. Another part stays unchanged. */
function partOf(value: JsonValue, param: string, checkOther: CheckPart): string | JsonObject {
  const part = objectAt(value, param);
  const type = requiredString(part, "type", { min: 1 }, `${param}.type`);
  if (type === "text" || type === "refusal")
    return requiredString(part, type, {}, `${param}.${type}`);
  checkOther(part, type, param);
  return part;
}

/** A text, or a list of texts. */
function checkStop(body: JsonObject): void {
  const stop = fieldOf(body, "stop");
  if (stop === undefined || typeof stop === "string") return;
  if (!Array.isArray(stop)) refuse(ErrorReason.INVALID_TYPE, { param: "stop" });
  for (const [index, one] of stop.entries()) {
    if (typeof one !== "string") refuse(ErrorReason.INVALID_TYPE, { param: `stop[${index}]` });
  }
}

function checkToolCalls(message: JsonObject, param: string): number {
  const calls = optionalArray(message, "tool_calls", `${param}.tool_calls`) ?? [];
  for (const [index, value] of calls.entries()) {
    const path = `${param}.tool_calls[${index}]`;
    const call = objectAt(value, path);
    requiredString(call, "id", { min: 1 }, `${path}.id`);
    const called = optionalObject(call, "function", `${path}.function`);
    if (!called) continue;
    requiredString(called, "name", { min: 1 }, `${path}.function.name`);
    requiredString(called, "arguments", {}, `${path}.function.arguments`);
  }
  return calls.length;
}

function checkOneChoice(body: JsonObject): void {
  const n = fieldOf(body, "n");
  if (n !== undefined && n !== 1) unsupported("n", "The parameter 'n' can only be 1.");
}

function checkTextOnly(body: JsonObject): void {
  if (fieldOf(body, "audio") !== undefined) unsupported("audio");
  const modalities = optionalArray(body, "modalities") ?? [];
  if (modalities.some((one) => one !== "text")) {
    unsupported("modalities", "The parameter 'modalities' can only be [\"text\"].");
  }
}

/**
 * The bound under chat's two names, and under that of Responses, which a translated request would have. Several names must have the
 * same value.
 */
function chatOutputLimit(body: JsonObject, spec: ChatSpec): number | undefined {
  const names = ["max_completion_tokens", "max_tokens", "max_output_tokens"];
  const given = names.flatMap((name) => {
    const limit = outputLimit(body, name, spec);
    return limit === undefined ? [] : [{ name, limit }];
  });
  const [first] = given;
  const other = given.find(({ limit }) => limit !== first?.limit);
  if (first && other) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: other.name,
      message: `The parameters '${other.name}' and '${first.name}' mean the same and differ. Send one of them.`,
    });
  }
  return first?.limit;
}
