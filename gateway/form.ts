// Reads a whole multipart form into memory: images to edit, audio to transcribe.

import type { FastifyReply, FastifyRequest } from "fastify";
import { plainFileName } from "#common/words/file-name.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import { joinInTurns, turn } from "#kit/base/in-turns.ts";
import type { BodyReader } from "./body.ts";
import { CallerLeftError } from "./errors.ts";
import { createFormParser, notMultipart, watchForm } from "./form-parser.ts";
import { multipartLimits } from "./limits.ts";

/** A file of a form. */
export interface FormFile {
  /** Name of its field. */
  name: string;
  fileName: string;
  bytes: Buffer;
}

/** A complete multipart form, without empty parts: a form's page sends each of its fields. */
export interface Form {
  /** In the form's order. A name may come more than once. */
  fields: [name: string, value: string][];
  files: FormFile[];
}

/**
 * Reads a form into memory, once its account may have that many bytes under way, with the values made of them. Refuses as {@link
 * BodyReader.json} does, and with INVALID_VALUE where it is malformed.
 */
export async function readForm(
  bodies: BodyReader,
  request: FastifyRequest,
  reply: FastifyReply,
  limitBytes: number,
): Promise<Form> {
  const length = Number(request.headers["content-length"] ?? limitBytes);
  if (length > limitBytes) refuse(ErrorReason.PAYLOAD_TOO_LARGE);
  const parser = createFormParser(request, multipartLimits);
  const held = await bodies.hold(request, reply, roomOf(length));
  const form: Form = { fields: [], files: [] };
  const read: Promise<void>[] = [];
  const source = request.raw;
  let size = 0;
  await new Promise<void>((resolve, reject) => {
    const fail = (error: Error) => {
      form.files.length = 0;
      source.unpipe(parser);
      source.resume();
      reject(error);
    };
    const come = (bytes: number) => {
      size += bytes;
      if (size > limitBytes) fail(new RefusalError(ErrorReason.PAYLOAD_TOO_LARGE));
    };
    source.on("data", (chunk: Buffer) => come(chunk.length));
    parser.on("field", (name, value, _, cut) => {
      if (cut) fail(new RefusalError(ErrorReason.INVALID_VALUE, { param: name }));
      if (value !== "") form.fields.push([name, value]);
    });
    parser.on("file", (name = "", stream, fileName = "") => {
      const parts: Buffer[] = [];
      stream.on("error", () => fail(notMultipart()));
      stream.on("data", (chunk: Buffer) => {
        parts.push(chunk);
        bodies.came(reply, chunk.length);
      });
      const index = read.length;
      const end = Promise.withResolvers<void>();
      read.push(end.promise);
      stream.on("end", () => {
        const joined = joinInTurns(parts).then((bytes) => {
          form.files[index] = { name, fileName: plainFileName(fileName), bytes };
        });
        end.resolve(joined);
      });
    });
    parser.on("finish", resolve);
    watchForm(request, parser, fail);
    if (source.destroyed) return fail(new CallerLeftError());
    source.pipe(parser);
    bodies.begin(request, reply, fail);
  });
  await Promise.all(read);
  form.files = form.files.filter(({ fileName, bytes }) => fileName !== "" || bytes.length > 0);
  held.shrink(roomOf(size));
  return form;
}

/** The room of a form and of its files' base64, which exists beside it. */
function roomOf(bytes: number): number {
  return Math.ceil(bytes * (7 / 3));
}

/** Bytes whose base64 is written before other work gets its turn. They take some ms. It is a multiple of three. */
const bytesAtOnce = 3 * 1024 * 1024;

/** Bytes as base64, written in several turns of the event loop. */
export async function inBase64(bytes: Buffer): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += bytesAtOnce) {
    parts.push(Buffer.from(bytes.toString("base64", at, at + bytesAtOnce), "latin1"));
    await turn();
  }
  return parts;
}
