import { optionalArray } from "#kit/body.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { StoredReference } from "../jobs/job.ts";
import { maxFileIdLength, maxReferenceUrlLength } from "../limits.ts";
import type { ReferenceInput } from "../references/port.ts";

/**
 * The references of a body in their order: `input_reference`, then `referenceFileIds`. Syntax alone; they may be too many,
 * or lead nowhere. Refuses with INVALID_INPUT_REFERENCE and INVALID_TYPE.
 */
export function readReferences(body: JsonObject): ReferenceInput[] {
  const own = body.input_reference ?? undefined;
  const first = own === undefined ? [] : [readInputReference(own)];
  const more = optionalArray(body, "referenceFileIds") ?? [];
  const files = more.map((fileId, index) => {
    const param = `referenceFileIds[${index}]`;
    if (typeof fileId !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
    return readFileId(fileId, param);
  });
  return [...first, ...files];
}

/** Refuses more references than the model takes; `options`: what it offers instead, for the caller to choose from. */
export function checkReferenceCount(
  references: readonly ReferenceInput[],
  most: number,
  options: readonly object[],
): void {
  if (references.length <= most) return;
  const noun = most === 1 ? "reference" : "references";
  refuse(ErrorReason.TOO_MANY_REFERENCES, {
    // That of the first one too many.
    param: fieldOf(references[most]),
    message:
      most === 0 ? "The model takes no references." : `The model takes at most ${most} ${noun}.`,
    metadata: { max_references: String(most), available_options: JSON.stringify(options) },
  });
}

/** The field of the body that a reference stands in. */
export function fieldOf(reference: ReferenceInput | undefined): string {
  return reference?.param.replace(/[.[].*/, "") ?? "input_reference";
}

/** What is written down of a reference: everything but bytes. */
export function toStoredReference(reference: ReferenceInput): StoredReference {
  const isInline = reference.kind === "url" && /^data:/i.test(reference.url);
  return isInline ? { kind: "inline", param: reference.param } : reference;
}

function readInputReference(value: JsonValue): ReferenceInput {
  const param = "input_reference";
  if (!isJsonObject(value)) refuse(ErrorReason.INVALID_INPUT_REFERENCE, { param });
  // An absent one may be sent as null.
  const sent = Object.entries(value).filter(([, field]) => field !== null);
  const [name, field] = sent[0] ?? [];
  if (sent.length !== 1 || (name !== "file_id" && name !== "image_url")) {
    refuse(ErrorReason.INVALID_INPUT_REFERENCE, { param });
  }
  const path = `${param}.${name}`;
  if (typeof field !== "string" || field === "") {
    refuse(ErrorReason.INVALID_INPUT_REFERENCE, { param: path });
  }
  if (name === "file_id") return readFileId(field, path);
  const isInline = /^data:/i.test(field);
  const isUrl = /^https?:\/\//i.test(field) && field.length <= maxReferenceUrlLength;
  if (isInline || (isUrl && URL.canParse(field))) return { kind: "url", url: field, param: path };
  return refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
    param: path,
    message: "An image_url is a public http or https URL, or a base64 image data URI.",
  });
}

function readFileId(fileId: string, param: string): ReferenceInput {
  const isId = fileId !== "" && fileId.length <= maxFileIdLength;
  return isId
    ? { kind: "file", fileId, param }
    : refuse(ErrorReason.REFERENCE_NOT_FOUND, { param });
}
