// Checks the items of a Responses input, and notes the images, files, tools and states in them. `responses.ts` checks the rest of
// the request.

import { requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { opaqueIn } from "../../upstreams/text/opaque.ts";
import { CalledNames } from "./called-names.ts";
import type { FilePart, ImagePart, OpaquePart } from "./checked.ts";
import { fieldOf, filledArray, itemsAtOnce, objectAt, unsupported } from "./fields.ts";
import { checkInputFile, checkSound } from "./file-parts.ts";
import { knownItemTypes } from "./nested-names.ts";
import { noReferences } from "./operator-state.ts";
import { resolveReasoning } from "./reasoning.ts";
import { type CheckedTools, checkToolsIn } from "./tools.ts";

/** Roles of a message of `/responses`. */
const roles: readonly string[] = ["user", "assistant", "system", "developer"];
/** Text parts, and the field that holds the text. */
const textParts: Readonly<Record<string, string>> = {
  input_text: "text",
  output_text: "text",
  refusal: "refusal",
};
const details: readonly string[] = ["auto", "low", "high"];

/** The parts and tools that were found in the items of an input. */
export interface Found {
  images: ImagePart[];
  files: FilePart[];
  opaque: OpaquePart[];
  /** Tools within items. */
  tools: CheckedTools;
  names: CalledNames;
}

function nothingFound(): Found {
  const tools = { count: 0, hosted: false, described: [] };
  return { images: [], files: [], opaque: [], tools, names: new CalledNames() };
}

/** The result for an input without items. */
export const noneFound: Readonly<Found> = nothingFound();

/**
 * Checks the items of an `input` array. Messages, outputs of calls and tools are checked down to their parts. Refuses with the path of
 * the wrong field.
 */
export function* checkItems(items: readonly JsonValue[], spec: ChatSpec): Generator<void, Found> {
  const found = nothingFound();
  for (const [index, value] of items.entries()) {
    if (index > 0 && index % itemsAtOnce === 0) yield;
    const param = `input[${index}]`;
    const item = objectAt(value, param);
    // A server's list of its tools is a report. Every other list offers tools to the model.
    const isReport = item.type === "mcp_list_tools";
    if (!isReport) yield* checkToolsIn(item, param, spec, "responses", found.tools);
    checkItem(item, param, spec, found);
  }
  return found;
}

function checkItem(item: JsonObject, param: string, spec: ChatSpec, found: Found): void {
  const type = fieldOf(item, "type");
  if (type !== undefined && typeof type !== "string") {
    refuse(ErrorReason.INVALID_TYPE, { param: `${param}.type` });
  }
  if (type !== undefined && !knownItemTypes.has(type)) {
    if (!spec.tools.includes("*"))
      unsupported(`${param}.type`, "Items of this type are not supported. Leave the item out.");
    // To the upstream it may be anything, even a tool.
    found.tools.hosted = true;
  }
  noteOpaque(item, param, found);
  found.names.noteItem(item);
  if (type === undefined && isBareReference(item)) unsupported(`${param}.id`, noReferences);
  switch (type) {
    case undefined:
    case "message":
      requiredString(item, "role", { min: 1, oneOf: roles }, `${param}.role`);
      // Histories hold turns of a model without text.
      if (item.role === "assistant" && fieldOf(item, "content") === undefined) item.content = "";
      checkContent(fieldOf(item, "content"), `${param}.content`, spec, found);
      break;
    case "item_reference":
      unsupported(`${param}.type`, noReferences);
      break;
    case "configuration_update":
      resolveReasoning(item, spec, `${param}.reasoning`);
      break;
    case "function_call":
      requiredString(item, "call_id", { min: 1 }, `${param}.call_id`);
      requiredString(item, "name", { min: 1 }, `${param}.name`);
      requiredString(item, "arguments", {}, `${param}.arguments`);
      break;
    case "function_call_output":
    case "custom_tool_call_output":
      requiredString(item, "call_id", { min: 1 }, `${param}.call_id`);
      checkContent(fieldOf(item, "output"), `${param}.output`, spec, found);
      break;
    case "computer_call_output":
      checkScreenshot(item, param, spec, found);
      break;
    case "image_generation_call":
      checkGenerated(item, param, found);
      break;
  }
}

/**
 * Checks an image of an earlier turn. It comes with its bytes, because the upstream would look for its id in the operator's account.
 */
function checkGenerated(item: JsonObject, param: string, found: Found): void {
  const result = fieldOf(item, "result");
  if (typeof result === "string") found.images.push({ holder: item, field: "result", param });
  else if (item.status !== "failed") unsupported(`${param}.id`, noReferences);
}

// The short form of an item reference has only an id.
function isBareReference(item: JsonObject): boolean {
  return fieldOf(item, "role") === undefined && typeof fieldOf(item, "id") === "string";
}

/** Notes state that only its maker can read, at the depths at which answers have it. */
function noteOpaque(item: JsonObject, param: string, found: Found): void {
  for (const value of opaqueIn(item)) {
    const isOwn = item.encrypted_content === value;
    found.opaque.push({ value, param: isOwn ? `${param}.encrypted_content` : param });
  }
}

/** Text, or an array of parts. */
function checkContent(
  content: JsonValue | undefined,
  param: string,
  spec: ChatSpec,
  found: Found,
): void {
  if (typeof content === "string") return;
  if (content === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
  if (!Array.isArray(content)) refuse(ErrorReason.INVALID_TYPE, { param });
  for (const [index, part] of content.entries()) {
    if (isText(part)) continue;
    const path = `${param}[${index}]`;
    checkPart(objectAt(part, path), path, spec, found);
  }
}

/** Is it a text part that needs no further check? Most parts are, and there may be a million. */
function isText(part: JsonValue): boolean {
  if (!isJsonObject(part) || typeof part.type !== "string") return false;
  const field = Object.hasOwn(textParts, part.type) ? textParts[part.type] : undefined;
  return field !== undefined && typeof part[field] === "string";
}

function checkPart(part: JsonObject, param: string, spec: ChatSpec, found: Found): void {
  const type = requiredString(part, "type", { min: 1 }, `${param}.type`);
  const textField = Object.hasOwn(textParts, type) ? textParts[type] : undefined;
  if (textField !== undefined) {
    requiredString(part, textField, {}, `${param}.${textField}`);
    return;
  }
  switch (type) {
    case "input_image":
      checkImage(part, param, spec, found);
      break;
    case "input_file":
      found.files.push(checkInputFile(part, param, spec));
      break;
    case "input_audio":
      found.files.push(checkSound(part, param, spec));
      break;
    default:
      refuse(ErrorReason.UNSUPPORTED_CONTENT_TYPE, { param: `${param}.type` });
  }
}

function checkImage(part: JsonObject, param: string, spec: ChatSpec, found: Found): void {
  if (!spec.inputModalities.includes("image")) {
    refuse(ErrorReason.UNSUPPORTED_CONTENT_TYPE, {
      param: `${param}.type`,
      message:
        "The model takes no images. Models that do have 'image' in their inputModalities (GET /models).",
    });
  }
  const url = fieldOf(part, "image_url");
  const fileId = fieldOf(part, "file_id");
  if (url !== undefined && typeof url !== "string") {
    refuse(ErrorReason.INVALID_TYPE, { param: `${param}.image_url` });
  }
  if (fileId !== undefined && typeof fileId !== "string") {
    refuse(ErrorReason.INVALID_TYPE, { param: `${param}.file_id` });
  }
  if (!url && !fileId) {
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: `${param}.image_url` });
  }
  if (url !== undefined && fileId !== undefined) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: `${param}.file_id`,
      message: "Send either image_url or file_id, not both.",
    });
  }
  const detail = fieldOf(part, "detail");
  if (detail !== undefined && (typeof detail !== "string" || !details.includes(detail))) {
    refuse(typeof detail === "string" ? ErrorReason.INVALID_VALUE : ErrorReason.INVALID_TYPE, {
      param: `${param}.detail`,
      message: `The parameter '${param}.detail' must be one of: ${details.join(", ")}.`,
    });
  }
  found.images.push({ holder: part, field: "image_url", param });
}

/** Checks a screenshot, which is an image like any other. */
function checkScreenshot(item: JsonObject, param: string, spec: ChatSpec, found: Found): void {
  requiredString(item, "call_id", { min: 1 }, `${param}.call_id`);
  const path = `${param}.output`;
  const output = fieldOf(item, "output");
  if (output === undefined) refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: path });
  checkImage(objectAt(output, path), path, spec, found);
}

/** The input of a request: text, or at least one item. */
export function inputOf(body: JsonObject): string | JsonValue[] {
  const input = fieldOf(body, "input");
  if (input === "") refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "input" });
  return typeof input === "string" ? input : filledArray(input, "input");
}
