// Reads the stream of messages that is an upload, and makes the message of a stored file.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import {
  type StoredFile,
  StoredFileSchema,
  type UploadFileRequest,
  type UploadHeader,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { AccountFile } from "./file.ts";
import { maxChunkBytes } from "./limits.ts";

/** The messages of an upload, read one by one. Disposing of it ends them. */
export interface UploadMessages extends AsyncDisposable {
  header: UploadHeader;
  /** The chunks behind the header, once. Refuses a message that is no chunk, or has too long a chunk, with INVALID_ARGUMENT. */
  chunks(): AsyncGenerator<Uint8Array, void>;
}

/**
 * Reads the header. Refuses with INVALID_ARGUMENT where the first message is none. Everything awaited here rejects with the reason of
 * `signal`, even where the sender has fallen silent.
 */
export async function readUpload(
  messages: AsyncIterable<UploadFileRequest>,
  signal: AbortSignal,
): Promise<UploadMessages> {
  const iterator = messages[Symbol.asyncIterator]();
  const left = Promise.withResolvers<never>();
  left.promise.catch(() => {});
  const leave = () => left.reject(signal.reason);
  if (signal.aborted) leave();
  signal.addEventListener("abort", leave, { once: true });
  const next = () => Promise.race([iterator.next(), left.promise]);
  const end = async () => {
    signal.removeEventListener("abort", leave);
    const returned = iterator.return?.();
    // Where the sender has fallen silent, this would never return.
    if (signal.aborted) returned?.catch(() => {});
    else await returned;
  };
  try {
    const first = await next();
    const part = first.done ? undefined : first.value.part;
    if (part?.case !== "header") {
      refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "header" } });
    }
    return { header: part.value, chunks: () => chunksOf(next), [Symbol.asyncDispose]: end };
  } catch (error) {
    await end();
    throw error;
  }
}

async function* chunksOf(
  next: () => Promise<IteratorResult<UploadFileRequest>>,
): AsyncGenerator<Uint8Array, void> {
  for (;;) {
    const { done, value } = await next();
    if (done) return;
    if (value.part.case !== "chunk" || value.part.value.byteLength > maxChunkBytes) {
      refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "chunk" } });
    }
    yield value.part.value;
  }
}

/** A file as a message. */
export function toStoredFile(file: AccountFile): StoredFile {
  const { fileId, fileName, purpose, mimeType, sha256, width, height } = file;
  return create(StoredFileSchema, {
    fileId,
    fileName,
    purpose,
    mimeType,
    sizeBytes: BigInt(file.sizeBytes),
    sha256,
    width,
    height,
    createTime: timestampFromMs(file.createdAt),
  });
}
