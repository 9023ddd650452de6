// Parses multipart forms, and turns each way to break one into a refusal. `form.ts` reads a form into memory, and
// `upload-form.ts` streams one.

import { Busboy, type BusboyConfig, type BusboyInstance, type Dicer } from "@fastify/busboy";
import type { FastifyRequest } from "fastify";
import { ErrorReason, type RefusalError, refuse } from "#kit/base/errors.ts";
import { isMediaType, isPlain } from "./body.ts";
import { CallerLeftError, malformed } from "./errors.ts";
import { withOneName } from "./file-names.ts";

/** A form that is not well-formed. */
export function notMultipart(): RefusalError {
  return malformed("The form must be valid multipart/form-data.");
}

/** A parser of the request's form. A body that is no form is refused with UNSUPPORTED_MEDIA_TYPE. */
export function createFormParser(
  request: FastifyRequest,
  limits: BusboyConfig["limits"],
): BusboyInstance {
  const contentType = request.headers["content-type"];
  const plain = isPlain(request.headers["content-encoding"]);
  if (!contentType || !isMediaType(contentType, "multipart/form-data") || !plain) {
    refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE, {
      message: "Send the file as Content-Type: multipart/form-data, without Content-Encoding.",
    });
  }
  const config: BusboyConfig = {
    headers: { ...request.headers, "content-type": contentType },
    ...(limits && { limits }),
  };
  try {
    const parser = new Busboy(config);
    readExactNames(parser);
    return parser;
  } catch {
    throw malformed("The Content-Type of the form names no boundary.");
  }
}

/**
 * Makes the parser read `filename*`. By itself it takes the last name of a file, or the first where all are in their usual order, and
 * shows no header. Its inner parser shows each part's header before it is read.
 */
function readExactNames(parser: BusboyInstance): void {
  const { parser: inner } = (parser as unknown as { _parser: { parser: Dicer } })._parser;
  inner.on("part", (part) => {
    part.prependListener("header", (header) => {
      const dispositions = (header as Record<string, string[]>)["content-disposition"];
      if (dispositions?.[0]) dispositions[0] = withOneName(dispositions[0]);
    });
  });
}

/** Calls `fail` for everything that ends a form: too many parts, no multipart, a caller that leaves in its middle. */
export function watchForm(
  { raw }: FastifyRequest,
  parser: BusboyInstance,
  fail: (error: Error) => void,
): void {
  for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const) {
    parser.on(limit, () => fail(malformed("The form has too many parts.")));
  }
  parser.on("error", () => fail(notMultipart()));
  raw.once("close", () => {
    if (!raw.complete) fail(new CallerLeftError());
  });
}
