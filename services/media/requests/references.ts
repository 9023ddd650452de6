// Reads the references of a job's body, by their syntax alone. `files/importer.ts` finds and fetches them later.

import { optionalArray } from "#common/words/body.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import { parseUrl } from "#kit/base/url.ts";
import { isDataUri } from "#kit/images/index.ts";
import { BodyForm } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { MediaKind, StoredReference } from "../jobs/job.ts";
import { maxFileIdLength } from "../limits.ts";
import type { FileReference, ReferenceInput } from "../references/port.ts";

/**
 * The references of a body in their order: `input_reference`, then `referenceFileIds`. Only their syntax is checked. They may be too
 * many, or lead nowhere. A URL below `publicBaseUrl` becomes the file that it names here. Refuses with INVALID_INPUT_REFERENCE or
 * INVALID_TYPE, and with REFERENCE_NOT_FOUND where there can be no such file.
 */
export function readReferences(
  body: JsonObject,
  publicBaseUrl = "",
  form: BodyForm = BodyForm.UNSPECIFIED,
): ReferenceInput[] {
  const own = body.input_reference ?? undefined;
  const first =
    form === BodyForm.OPENAI_EDIT
      ? readEdited(own)
      : own === undefined
        ? []
        : [readImageField("input_reference", own, publicBaseUrl)];
  const more = optionalArray(body, "referenceFileIds") ?? [];
  const files = more.map((fileId, index) => {
    const param = `referenceFileIds[${index}]`;
    if (typeof fileId !== "string") refuse(ErrorReason.INVALID_TYPE, { param });
    return readFileId(fileId, param);
  });
  return [...first, ...files];
}

/** The references of a job's body: its images, and behind them the mask of an image's edit. */
export function readInputs(
  kind: MediaKind,
  body: JsonObject,
  publicBaseUrl?: string,
  form?: BodyForm,
): ReferenceInput[] {
  if (kind === "music") return [];
  const images = readReferences(body, publicBaseUrl, form);
  const mask = kind === "image" ? (body.mask ?? undefined) : undefined;
  if (mask === undefined) return images;
  const read = readImageField("mask", mask, publicBaseUrl);
  // A form names its file as a whole.
  const param = form === BodyForm.OPENAI_EDIT ? "mask" : read.param;
  return [...images, { ...read, param, isMask: true }];
}

/** The images of an edit, which the edge has read from its form. */
function readEdited(own: JsonValue | undefined): ReferenceInput[] {
  if (!Array.isArray(own) || own.length === 0) {
    return refuse(ErrorReason.MISSING_REQUIRED_PARAMETER, { param: "image" });
  }
  return own.map((one, index) => {
    const param = own.length === 1 ? "image" : `image[${index}]`;
    return { ...readImageField("input_reference", one), param };
  });
}

/** Refuses more references than the model takes. `options`: the model's other offers, from which the caller may choose. */
export function checkReferenceCount(
  references: readonly ReferenceInput[],
  most: number,
  options: readonly object[],
): void {
  if (references.length <= most) return;
  const noun = most === 1 ? "reference" : "references";
  refuse(ErrorReason.TOO_MANY_REFERENCES, {
    // The field of the first surplus one.
    param: fieldOf(references[most]),
    message:
      most === 0 ? "The model takes no references." : `The model takes at most ${most} ${noun}.`,
    metadata: { max_references: String(most), available_options: JSON.stringify(options) },
  });
}

/** The field of the body that holds a reference. */
export function fieldOf(reference: ReferenceInput | undefined): string {
  return reference?.param.replace(/[.[].*/, "") ?? "input_reference";
}

/** The stored form of a reference: everything except bytes. */
export function toStoredReference(reference: ReferenceInput): StoredReference {
  const isInline = reference.kind === "url" && isDataUri(reference.url);
  return isInline ? { kind: "inline", param: reference.param } : reference;
}

/** An image that a field of the body names: a file, a URL or a data URI. */
function readImageField(param: string, value: JsonValue, publicBaseUrl = ""): ReferenceInput {
  if (!isJsonObject(value)) refuse(ErrorReason.INVALID_INPUT_REFERENCE, { param });
  const sent = Object.entries(value);
  const [name, field] = sent[0] ?? [];
  if (sent.length !== 1 || (name !== "file_id" && name !== "image_url")) {
    refuse(ErrorReason.INVALID_INPUT_REFERENCE, { param });
  }
  const path = `${param}.${name}`;
  if (typeof field !== "string" || field === "") {
    refuse(ErrorReason.INVALID_INPUT_REFERENCE, { param: path });
  }
  if (name === "file_id") return readFileId(field, path);
  const isInline = isDataUri(field);
  const own = isInline ? undefined : ownPath(field, publicBaseUrl);
  if (own !== undefined) return readOwnPath(own, path);
  const isUrl = /^https?:\/\//i.test(field) && parseUrl(field) !== null;
  if (isInline || isUrl) return { kind: "url", url: field, param: path };
  return refuse(ErrorReason.INVALID_INPUT_REFERENCE, {
    param: path,
    message: "An image_url must be a public http or https URL, or a base64 image data URI.",
  });
}

/** The path of a URL below our own base. Undefined where the URL is elsewhere. */
function ownPath(text: string, publicBaseUrl: string): string | undefined {
  const base = URL.parse(publicBaseUrl);
  const url = parseUrl(text);
  if (!base || url?.origin !== base.origin) return undefined;
  const before = `${base.pathname.replace(/\/$/, "")}/`;
  return url.pathname.startsWith(before) ? url.pathname.slice(before.length) : undefined;
}

/** A generated output, or a file of the account, by its own URL. */
function readOwnPath(path: string, param: string): ReferenceInput {
  const [, upload] = /^files\/([^/]+)\/content$/.exec(path) ?? [];
  if (upload) return readFileId(upload, param);
  const output = /^(?:images|videos|music)\/generations\/([^/]+)\/files\/([^/]+)$/.exec(path);
  const [, jobId, fileId] = output ?? [];
  if (!jobId || !fileId) refuse(ErrorReason.REFERENCE_NOT_FOUND, { param });
  return { ...readFileId(fileId, param), jobId };
}

function readFileId(fileId: string, param: string): FileReference {
  const isId = fileId !== "" && fileId.length <= maxFileIdLength;
  return isId
    ? { kind: "file", fileId, param }
    : refuse(ErrorReason.REFERENCE_NOT_FOUND, { param });
}
