// Checks the parts of a conversation that are PDFs or audio, except their bytes. `files.ts` reads those afterwards.

import { optionalString, requiredString } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { JsonObject } from "#kit/base/json.ts";
import type { ChatSpec } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { maxFileNameCharacters } from "../base/limits.ts";
import type { FilePart } from "./checked.ts";
import { fieldOf, objectAt, unsupported } from "./fields.ts";

/** Fields of a file in `/responses`. Null counts as absent. */
const responsesFields = ["type", "filename", "file_data", "file_url", "detail"];
/** Fields of the object that holds a file in chat. It has no address and no detail there. */
const chatFields = ["filename", "file_data"];
/** Marks the end of a cached prompt. It has no meaning for the part. */
const breakpoint = "prompt_cache_breakpoint";
const details: readonly string[] = ["auto", "low", "high"];
const soundFormats: readonly string[] = ["wav", "mp3"];

/** Checks an `input_file` of `/responses`, except its bytes. Refuses with the path of the wrong field. */
export function checkInputFile(part: JsonObject, param: string, spec: ChatSpec): FilePart {
  refuseFileId(part, param);
  refuseWithout(
    spec,
    "pdf",
    param,
    "The model takes no PDFs. Models that do have 'pdf' in their inputModalities (GET /models).",
  );
  keepOnly(part, [...responsesFields, breakpoint], param);
  const data = optionalString(part, "file_data", {}, `${param}.file_data`);
  const url = optionalString(part, "file_url", {}, `${param}.file_url`);
  if (!data && !url)
    refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: `${param}.file_data` });
  if (data !== undefined && url !== undefined) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: `${param}.file_url`,
      message: "Send either file_data or file_url, not both.",
    });
  }
  checkName(part, param);
  optionalString(part, "detail", { oneOf: details }, `${param}.detail`);
  return { holder: part, field: "file_data", param };
}

/** Checks a `file` of chat in the same way. */
export function checkChatFile(part: JsonObject, param: string, spec: ChatSpec): FilePart {
  refuseWithout(spec, "pdf", param, notText);
  keepOnly(part, ["type", "file", breakpoint], param);
  const path = `${param}.file`;
  const file = objectAt(fieldOf(part, "file") ?? missing(path), path);
  refuseFileId(file, path);
  keepOnly(file, chatFields, path);
  requiredString(file, "file_data", { min: 1 }, `${path}.file_data`);
  checkName(file, path);
  return { holder: file, field: "file_data", param: path };
}

/** Checks an `input_audio`, which is the same in both APIs, except its bytes. */
export function checkSound(
  part: JsonObject,
  param: string,
  spec: ChatSpec,
  message = "The model takes no sound. Models that do have 'audio' in their inputModalities (GET /models).",
): FilePart {
  refuseWithout(spec, "audio", param, message);
  keepOnly(part, ["type", "input_audio", breakpoint], param);
  const path = `${param}.input_audio`;
  const sound = objectAt(fieldOf(part, "input_audio") ?? missing(path), path);
  keepOnly(sound, ["data", "format"], path);
  requiredString(sound, "data", { min: 1 }, `${path}.data`);
  requiredString(sound, "format", { min: 1, oneOf: soundFormats }, `${path}.format`);
  return { holder: sound, field: "data", param: path };
}

/** The message for parts in chat that are not text for the model. */
export const notText =
  "The model takes no part of this type in POST /chat/completions. Send text, and images through POST /responses.";

/** Refuses a `file_id`. Files of the account are images alone, so the id would be that of a file at the upstream. */
function refuseFileId(holder: JsonObject, param: string): void {
  if (fieldOf(holder, "file_id") === undefined) return;
  unsupported(
    `${param}.file_id`,
    "Stored files are not supported here. Send the file itself: file_data, or file_url in POST /responses.",
  );
}

function refuseWithout(spec: ChatSpec, modality: string, param: string, message: string): void {
  if (spec.inputModalities.includes(modality)) return;
  refuse(ErrorReason.UNSUPPORTED_CONTENT_TYPE, { param: `${param}.type`, message });
}

function checkName(holder: JsonObject, param: string): void {
  optionalString(holder, "filename", { max: maxFileNameCharacters }, `${param}.filename`);
}

/** Removes nulls, and refuses unknown fields. To some upstream such a field could be another way of naming a file. */
function keepOnly(object: JsonObject, names: readonly string[], param: string): void {
  for (const name of Object.keys(object)) {
    if (object[name] === null) delete object[name];
    else if (!names.includes(name)) unsupported(`${param}.${name}`);
  }
}

function missing(param: string): never {
  return refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param });
}
