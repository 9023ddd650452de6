// Reads the form of an upload while it comes, and hands its file on in pieces. `form.ts` reads other forms whole.

import type { BusboyFileStream } from "@fastify/busboy";
import type { FastifyReply, FastifyRequest } from "fastify";
import { plainFileName } from "#common/words/file-name.ts";
import { ErrorReason, RefusalError, refuse } from "#kit/base/errors.ts";
import type { BodyReader } from "./body.ts";
import { CallerLeftError } from "./errors.ts";
import { createFormParser, notMultipart, watchForm } from "./form-parser.ts";
import { multipartLimits, uploadBufferBytes, uploadChunkBytes } from "./limits.ts";

/** A multipart upload (`file`, `purpose`) that is being read. */
export interface UploadForm {
  /** Resolves once both fields have begun. Rejects where the form is malformed or one is missing. */
  readonly header: Promise<{ fileName: string; purpose: string }>;
  /** The file's bytes. It ends only when the whole form was well-formed, and throws where it was not. */
  chunks(): AsyncIterable<Uint8Array>;
  /** Stops reading: the rest is not needed. */
  abandon(why: Error): void;
}

/** Characters of a `purpose`. */
export const maxPurposeLength = 64;

/** The parts of a form that were read. */
interface Reading {
  readonly header: PromiseWithResolvers<{ fileName: string; purpose: string }>;
  /** Resolves when the whole form was well-formed. */
  readonly complete: PromiseWithResolvers<void>;
  purpose?: string;
  /** `held`: its bytes, where they wait for `purpose`. */
  file?: { name: string; stream: BusboyFileStream; held: Buffer[] | undefined };
  fail(error: Error): void;
}

/**
 * Begins reading the form. The file is streamed where `purpose` comes first. Where `purpose` comes after the file (as OpenAI's SDK
 * sends it), the file is held until then, at most 20 MiB, the size of the largest accepted image.
 */
export function openUploadForm(
  bodies: BodyReader,
  request: FastifyRequest,
  reply: FastifyReply,
): UploadForm {
  // Two, so that a second file is seen and refused rather than dropped.
  const parser = createFormParser(request, { ...multipartLimits, files: 2 });
  const reading: Reading = {
    header: Promise.withResolvers(),
    complete: Promise.withResolvers(),
    fail(error) {
      reading.header.reject(error);
      reading.complete.reject(error);
      request.raw.unpipe(parser);
      request.raw.resume();
      reading.file?.stream.destroy(error);
    },
  };
  // Their readers get a failure when they await them. Until then it must not count as an unhandled rejection.
  reading.header.promise.catch(() => {});
  reading.complete.promise.catch(() => {});

  parser.on("field", (name, value, _, cut) => takeField(reading, name, value, cut));
  parser.on("file", (name, stream, fileName) =>
    takeFile(reading, name, stream, fileName, {
      hold: async () => bodies.hold(request, reply, uploadBufferBytes),
      came: (bytes) => bodies.came(reply, bytes),
    }),
  );
  parser.on("finish", () => {
    const { file } = reading;
    // A form's page sends a nameless part of 0 bytes where the user chose no file.
    const isChosen = file && (file.name !== "" || file.stream.bytesRead > 0);
    if (!isChosen) missing(reading, "file");
    else if (reading.purpose === undefined) missing(reading, "purpose");
    else reading.complete.resolve();
  });
  watchForm(request, parser, reading.fail);
  if (request.raw.destroyed) reading.fail(new CallerLeftError());
  request.raw.pipe(parser);
  bodies.begin(request, reply, reading.fail);
  return {
    header: reading.header.promise,
    chunks: () => chunksOf(reading),
    abandon: reading.fail,
  };
}

/** Keeps bytes that wait for `purpose`. */
interface Holding {
  /** Resolves when there is room for them. */
  hold(): Promise<unknown>;
  came(bytes: number): void;
}

function takeField(reading: Reading, name: string, value: string, cut: boolean): void {
  if (name === "file" && value !== "") invalid(reading, "file");
  if (name !== "purpose" || value === "") return;
  if (reading.purpose !== undefined || cut || value.length > maxPurposeLength) {
    invalid(reading, name);
  } else {
    reading.purpose = value;
    tellHeader(reading);
  }
}

function takeFile(
  reading: Reading,
  name: string | undefined,
  stream: BusboyFileStream,
  fileName: string | undefined,
  { hold, came }: Holding,
): void {
  stream.on("error", () => reading.fail(notMultipart()));
  if (name !== "file" || reading.file) {
    stream.resume();
    invalid(reading, name ?? "file");
    return;
  }
  const held = reading.purpose === undefined ? [] : undefined;
  reading.file = { name: plainFileName(fileName ?? ""), stream, held };
  // It is not read before it may be held.
  if (held) hold().then(() => collect(stream, held, came, reading.fail), reading.fail);
  tellHeader(reading);
}

function tellHeader({ file, purpose, header }: Reading): void {
  if (file && purpose !== undefined) header.resolve({ fileName: file.name || "upload", purpose });
}

async function* chunksOf({ file, complete }: Reading): AsyncIterable<Uint8Array> {
  // Held bytes may still wait for room, while `purpose` has come.
  if (file?.held) await complete.promise;
  try {
    yield* inChunks(file?.held ?? file?.stream ?? []);
  } catch (error) {
    // Throws the form's own fault, rather than the stream's error.
    await complete.promise;
    throw error;
  }
  await complete.promise;
}

function missing(reading: Reading, param: string): void {
  reading.fail(new RefusalError(ErrorReason.MISSING_REQUIRED_PARAMETER, { param }));
}

function invalid(reading: Reading, param: string): void {
  reading.fail(new RefusalError(ErrorReason.INVALID_VALUE, { param }));
}

function collect(
  stream: BusboyFileStream,
  held: Buffer[],
  came: Holding["came"],
  fail: (error: Error) => void,
): void {
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    size += chunk.length;
    try {
      if (size > uploadBufferBytes) refuse(ErrorReason.IMAGE_TOO_LARGE, { param: "file" });
      came(chunk.length);
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
