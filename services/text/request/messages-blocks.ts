// Checks the content of a Messages request, block by block, and notes what the later steps need. The files beside it check single
// kinds of blocks.

import { optionalString, requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { weightOf } from "#kit/base/weight.ts";
import type { ChatSpec, Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { sealedIn } from "../../upstreams/text/anthropic/sealed.ts";
import { maxFileNameCharacters, maxJsonDepth } from "../base/limits.ts";
import { CalledNames } from "./called-names.ts";
import type { FilePart, ImagePart, OpaquePart } from "./checked.ts";
import { fieldOf, objectAt, unsupported } from "./fields.ts";
import { checkAdded } from "./messages-added.ts";
import { checkBlockFields } from "./messages-fields.ts";
import { checkHostBlock, isOfHost } from "./messages-host.ts";
import { addedTypesOf, noteState } from "./messages-state.ts";
import { maxLeftOut } from "./operator-state.ts";

/** The findings of checking the blocks of a request. */
export interface FoundBlocks {
  spec: ChatSpec;
  count: number;
  images: ImagePart[];
  files: FilePart[];
  opaque: OpaquePart[];
  names: CalledNames;
  /** Inputs of calls. */
  inputs: JsonObject[];
  /** Names of properties that are not sent, by their path. */
  leftOut: Set<string>;
  /** Does the upstream speak Messages itself? Then everything within known blocks is sent. */
  isNative: boolean;
  /** The upstreams that do, if the request goes to those alone. */
  natives: readonly Upstream[];
  /** Types of tools that the upstream describes to the model itself. */
  described: Set<string>;
  /** Types of blocks beside the known ones that pass as they came. */
  added: ReadonlySet<string>;
  /** Types of tools that the upstream runs itself. */
  hosted: Set<string>;
  /** Has a turn of the model results of such tools? */
  hasHostResults: boolean;
}

/** Nothing found so far, in a request to this model. `natives`: the upstreams that speak Messages themselves, if it goes to those. */
export function newFoundBlocks(spec: ChatSpec, natives: readonly Upstream[]): FoundBlocks {
  return {
    natives,
    isNative: natives.length > 0,
    described: new Set(),
    added: addedTypesOf(natives),
    ...{ spec, count: 0, images: [], files: [], opaque: [], inputs: [] },
    names: new CalledNames(),
    leftOut: new Set(),
    hosted: new Set(),
    hasHostResults: false,
  };
}

/** The types of blocks by the place that holds them: a role, the system prompt, the result of a call, or the content of a document. */
const typesIn: Readonly<Record<string, readonly string[]>> = {
  user: ["text", "image", "document", "search_result", "tool_result"],
  assistant: ["text", "thinking", "redacted_thinking", "tool_use"],
  system: ["text"],
  tool_result: ["text", "image", "document", "search_result"],
  document: ["text", "image"],
  search_result: ["text"],
};

/** The same of blocks that only upstreams of Messages know. */
const nativeTypesIn: Readonly<Record<string, string>> = { tool_result: "tool_reference" };
/** Places where blocks of types that the catalog adds may stand. */
const placesOfAdded: readonly string[] = ["user", "assistant"];

/** Properties of each type of block that are sent. */
const sentNames: Readonly<Record<string, ReadonlySet<string>>> = {
  text: new Set(["type", "text"]),
  image: new Set(["type", "source"]),
  document: new Set(["type", "source", "title", "context"]),
  search_result: new Set(["type", "source", "title", "content"]),
  tool_result: new Set(["type", "tool_use_id", "content"]),
  tool_use: new Set(["type", "id", "name", "input"]),
  thinking: new Set(["type", "thinking", "signature"]),
  redacted_thinking: new Set(["type"]),
};

/** Notes the names in an object that are not among `sent`, for the header that names them. */
export function noteNames(
  object: JsonObject,
  sent: ReadonlySet<string>,
  path: string,
  { leftOut, isNative }: FoundBlocks,
): void {
  if (isNative) return;
  for (const name in object) {
    if (!sent.has(name) && object[name] !== null && leftOut.size < maxLeftOut) {
      leftOut.add(`${path}.${name}`);
    }
  }
}

/** Checks a list of blocks. Each image, and each PDF, gets the one form that the upstream side reads. */
export function checkBlocks(
  value: JsonValue,
  place: string,
  param: string,
  found: FoundBlocks,
): JsonObject[] {
  if (!Array.isArray(value)) refuse(ErrorReason.INVALID_TYPE, { param });
  return value.map((one, index) => {
    const path = `${param}[${index}]`;
    const block = objectAt(one, path);
    const type = requiredString(block, "type", { min: 1 }, `${path}.type`);
    const isAdded = placesOfAdded.includes(place) && found.added.has(type);
    const isKnown =
      typesIn[place]?.includes(type) || (found.isNative && nativeTypesIn[place] === type);
    const isHost = isOfHost(type, place, found);
    if (!isAdded && !isHost && !isKnown) {
      refuse(ErrorReason.UNSUPPORTED_CONTENT_TYPE, {
        param: `${path}.type`,
        message: `A block of the type '${type.slice(0, 64)}' is not supported here.`,
      });
    }
    found.count++;
    if (isAdded) {
      checkAdded(block, path, found.opaque);
      return block;
    }
    checkBlockFields(block, type, path);
    if (isHost) {
      checkHostBlock(block, path, found);
      return block;
    }
    const header = place === "system" && param === "system" ? "system" : "messages.content";
    noteNames(block, sentNames[type] ?? new Set(), header, found);
    checkBlock(block, type, path, found);
    return block;
  });
}

function checkBlock(block: JsonObject, type: string, param: string, found: FoundBlocks): void {
  switch (type) {
    case "text":
      requiredString(block, "text", {}, `${param}.text`);
      for (const { value, at } of sealedIn(block.citations ?? null, `${param}.citations`)) {
        noteState(value, at, param, found);
      }
      break;
    case "image":
      checkImage(block, param, found);
      break;
    case "document":
      checkDocument(block, param, found);
      break;
    case "search_result":
      requiredString(block, "source", {}, `${param}.source`);
      requiredString(block, "title", {}, `${param}.title`);
      checkBlocks(fieldOf(block, "content") ?? [], type, `${param}.content`, found);
      break;
    case "tool_result":
      requiredString(block, "tool_use_id", { min: 1 }, `${param}.tool_use_id`);
      found.names.answered();
      checkContent(block, type, param, found);
      break;
    case "tool_use":
      checkCall(block, param, found);
      break;
    case "tool_reference":
      requiredString(block, "tool_name", { min: 1 }, `${param}.tool_name`);
      break;
    case "thinking":
      requiredString(block, "thinking", {}, `${param}.thinking`);
      noteState(block.signature, `${param}.signature`, param, found);
      break;
    case "redacted_thinking":
      noteState(block.data, `${param}.data`, param, found);
  }
}

/** A text, or blocks. Absent: nothing. */
function checkContent(holder: JsonObject, place: string, param: string, found: FoundBlocks): void {
  const content = fieldOf(holder, "content");
  if (content === undefined || typeof content === "string") return;
  checkBlocks(content, place, `${param}.content`, found);
}

function checkCall(block: JsonObject, param: string, found: FoundBlocks): void {
  requiredString(block, "id", { min: 1 }, `${param}.id`);
  const name = requiredString(block, "name", { min: 1 }, `${param}.name`);
  found.inputs.push(objectAt(fieldOf(block, "input"), `${param}.input`));
  found.names.called(name);
}

/** Characters of inputs that are weighed before other work has its turn. They take some ms. */
const charactersAtOnce = 256 * 1024;
/** The cost of a call beside its characters, in characters. */
const callCharacters = 64;

/** Bytes that arguments of calls take beyond their weight, where a template writes them as JSON again. A long one takes several turns. */
export function* argumentBytesOf({ inputs }: FoundBlocks): Generator<void, number> {
  let bytes = 0;
  let left = charactersAtOnce;
  for (const input of inputs) {
    const text = JSON.stringify(input);
    left -= text.length + callCharacters;
    if (left < 0) yield;
    const written = weightOf({ arguments: text }, maxJsonDepth);
    if (left < 0) yield;
    bytes += Math.max(0, written - weightOf({ input }, maxJsonDepth));
    if (left >= 0) continue;
    left = charactersAtOnce;
    yield;
  }
  return bytes;
}

const noImages =
  "The model takes no images. Models that do have 'image' in their inputModalities (GET /models).";
const noDocuments =
  "The model takes no PDFs. Models that do have 'pdf' in their inputModalities (GET /models).";

function refuseWithout(modality: string, message: string, param: string, spec: ChatSpec): void {
  if (spec.inputModalities.includes(modality)) return;
  refuse(ErrorReason.UNSUPPORTED_CONTENT_TYPE, { param: `${param}.type`, message });
}

/** Puts the image's address or data URI into `source.image_url`, from where it is taken like any other image. */
function checkImage(block: JsonObject, param: string, found: FoundBlocks): void {
  refuseWithout("image", noImages, param, found.spec);
  const path = `${param}.source`;
  const source = objectAt(fieldOf(block, "source"), path);
  const { at, url } = addressOf(source, path, imageTypes);
  block.source = { image_url: url };
  found.images.push({
    holder: block.source,
    field: "image_url",
    param: path,
    at,
    takesWebp: true,
  });
}

/** Files at Anthropic are of the operator's account. */
const noFiles = "Stored files are not supported here. Send the file itself.";

const imageTypes = ["image/jpeg", "image/png", "image/gif", "image/webp"];
const documentTypes = ["application/pdf"];

function addressOf(
  source: JsonObject,
  path: string,
  types: readonly string[],
): { at: string; url: string } {
  const type = requiredString(source, "type", { min: 1 }, `${path}.type`);
  if (type === "url") {
    return { at: `${path}.url`, url: requiredString(source, "url", { min: 1 }, `${path}.url`) };
  }
  if (type !== "base64") unsupported(`${path}.type`, noFiles);
  const rule = { min: 1, oneOf: types };
  const mime = requiredString(source, "media_type", rule, `${path}.media_type`);
  const data = requiredString(source, "data", { min: 1 }, `${path}.data`);
  return { at: `${path}.data`, url: `data:${mime};base64,${data}` };
}

/** A PDF becomes a file like any other. Texts and lists of blocks stay. */
function checkDocument(block: JsonObject, param: string, found: FoundBlocks): void {
  const path = `${param}.source`;
  const source = objectAt(fieldOf(block, "source"), path);
  const title = optionalString(block, "title", {}, `${param}.title`);
  optionalString(block, "context", {}, `${param}.context`);
  const type = requiredString(source, "type", { min: 1 }, `${path}.type`);
  if (type === "text") {
    requiredString(source, "data", {}, `${path}.data`);
    return;
  }
  if (type === "content") {
    checkContent(source, "document", path, found);
    return;
  }
  refuseWithout("pdf", noDocuments, param, found.spec);
  const { at, url } = addressOf(source, path, documentTypes);
  const filename = (title ?? "").slice(0, maxFileNameCharacters);
  block.source = {
    ...(filename === "" ? {} : { filename }),
    ...(type === "url" ? { file_url: url } : { file_data: url }),
  };
  found.files.push({ holder: block.source, field: "file_data", param: path, at });
}
