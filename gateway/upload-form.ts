import {
  Busboy,
  type BusboyConfig,
  type BusboyFileStream,
  type BusboyInstance,
} from "@fastify/busboy";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, RefusalError, refuse } from "#kit/errors.ts";
import type { BodyReader } from "./body.ts";
import { isMediaType, isPlain } from "./body.ts";
import { CallerLeftError, malformed } from "./errors.ts";
import { multipartLimits, uploadBufferBytes, uploadChunkBytes } from "./limits.ts";

/** A multipart upload (`file`, `purpose`) that is being read. */
export interface UploadForm {
  /** Resolves once both fields have begun; rejects where the form is malformed or one is missing. */
  readonly header: Promise<{ fileName: string; purpose: string }>;
  /** The file's bytes; ends only when the whole form was well-formed, and throws where it was not. */
  chunks(): AsyncIterable<Uint8Array>;
}

const maxPurposeLength = 64;
const maxFileNameLength = 255;

/**
 * Begins reading the form. The file streams through where `purpose` comes first; where it comes after the file (as
 * OpenAI's SDK sends it), the file is held until then, at most 20 MiB: no larger image is accepted anyway.
 */
export function openUploadForm(
  bodies: BodyReader,
  request: FastifyRequest,
  reply: FastifyReply,
): UploadForm {
  const parser = createParser(request);
  const header = Promise.withResolvers<{ fileName: string; purpose: string }>();
  const complete = Promise.withResolvers<void>();
  // Whoever awaits them hears of a failure; nobody may be there yet.
  header.promise.catch(() => {});
  complete.promise.catch(() => {});
  let purpose: string | undefined;
  let file: { name: string; stream: BusboyFileStream; held: Buffer[] | undefined } | undefined;

  const fail = (error: Error) => {
    header.reject(error);
    complete.reject(error);
    request.raw.unpipe(parser);
    request.raw.resume();
    file?.stream.destroy(error);
  };
  const known = () => {
    if (file && purpose !== undefined) header.resolve({ fileName: file.name, purpose });
  };
  const missing = (param: string) =>
    fail(new RefusalError(ErrorReason.MISSING_REQUIRED_PARAMETER, { param }));
  const invalid = (param: string) => fail(new RefusalError(ErrorReason.INVALID_VALUE, { param }));

  parser.on("field", (name, value, _nameCut, valueCut) => {
    if (name === "file") invalid("file");
    if (name !== "purpose") return;
    if (purpose !== undefined || valueCut || value.length > maxPurposeLength) return invalid(name);
    if (value === "") return missing(name);
    purpose = value;
    known();
  });
  parser.on("file", (name, stream, fileName) => {
    stream.on("error", () => {});
    if (name !== "file" || file) {
      stream.resume();
      return invalid(name ?? "file");
    }
    const held = purpose === undefined ? [] : undefined;
    file = { name: (fileName || "upload").slice(0, maxFileNameLength), stream, held };
    if (held) collect(stream, held, (bytes) => bodies.hold(reply, bytes), fail);
    known();
  });
  for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const) {
    parser.on(limit, () => fail(malformed("The form has too many parts.")));
  }
  parser.on("error", () => fail(malformed("The form is not valid multipart/form-data.")));
  parser.on("finish", () => {
    if (!file) missing("file");
    else if (purpose === undefined) missing("purpose");
    else complete.resolve();
  });
  request.raw.once("close", () => {
    if (!request.raw.complete) fail(new CallerLeftError());
  });
  if (request.raw.destroyed) fail(new CallerLeftError());
  request.raw.pipe(parser);
  bodies.begin(request, reply, fail);

  return {
    header: header.promise,
    async *chunks() {
      yield* inChunks(file?.held ?? file?.stream ?? []);
      await complete.promise;
    },
  };
}

function createParser(request: FastifyRequest): BusboyInstance {
  const contentType = request.headers["content-type"];
  const plain = isPlain(request.headers["content-encoding"]);
  if (!contentType || !isMediaType(contentType, "multipart/form-data") || !plain) {
    refuse(ErrorReason.UNSUPPORTED_MEDIA_TYPE, {
      message: "A file is sent as Content-Type: multipart/form-data, without Content-Encoding.",
    });
  }
  const config: BusboyConfig = {
    headers: { ...request.headers, "content-type": contentType },
    // Two, so that a second file is seen and refused rather than dropped.
    limits: { ...multipartLimits, files: 2 },
  };
  try {
    return new Busboy(config);
  } catch {
    throw malformed("The form has no boundary.");
  }
}

function collect(
  stream: BusboyFileStream,
  held: Buffer[],
  hold: (bytes: number) => void,
  fail: (error: Error) => void,
): void {
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    try {
      if (size > uploadBufferBytes) refuse(ErrorReason.IMAGE_TOO_LARGE, { param: "file" });
      hold(chunk.length);
      held.push(chunk);
    } catch (error) {
      held.length = 0;
      fail(error as Error);
    }
  });
}

async function* inChunks(source: AsyncIterable<Buffer> | Iterable<Buffer>) {
  for await (const piece of source) {
    for (let at = 0; at < piece.length; at += uploadChunkBytes) {
      yield piece.subarray(at, at + uploadChunkBytes);
    }
  }
}
