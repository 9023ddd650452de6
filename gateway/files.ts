// Answers with one stored file of the caller's account: its bytes with headers and range, or its document. `made-files.ts` sends what is made
// while it is sent. `file-names.ts` names the download; `downloads.ts` bounds how many run at once.

import type { FastifyReply, FastifyRequest } from "fastify";
import { unixSeconds } from "#common/documents/answer-values.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { BlobNotFoundError, type ByteRange } from "#kit/store/blobs.ts";
import type { FileArea, StoredFile } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "./context.ts";
import { dispositionOf } from "./file-names.ts";
import { deadlinesMs } from "./limits.ts";
import { queryString } from "./query.ts";
import { callOptions, sendStream } from "./request.ts";
import { object, string } from "./schemas.ts";

/** Parameters of a path that names a file of the account. */
export const fileParams = object({ fileId: string("The file.") }, ["fileId"]);

/** The public document of a stored file: OpenAI's file object, and for an image its verified type and size. */
export function toFileDocument(file: StoredFile) {
  return {
    id: file.fileId,
    object: "file",
    bytes: Number(file.sizeBytes),
    created_at: unixSeconds(file.createTime),
    filename: file.fileName,
    purpose: file.purpose,
    // Files are verified before they are answered, so there is no other state.
    status: "processed",
    expires_at: null,
    mimeType: file.mimeType,
    sha256: file.sha256,
    width: file.width,
    height: file.height,
  };
}

/** A private file that a path names. */
export interface FileRef {
  area: FileArea;
  /** The job or speech. Empty for uploads. */
  parentId: string;
  fileId: string;
}

/**
 * Answers with a private file: asks media for its place, then pipes the store into the answer. GET takes Range and If-Range. GET and
 * HEAD take If-None-Match. HEAD never opens the store.
 */
export async function sendFile(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  name: FileRef,
): Promise<unknown> {
  const file = await edge.peers.media.locateFile(
    name,
    callOptions(request, reply, deadlinesMs.quick),
  );
  const sizeBytes = Number(file.sizeBytes);
  const etag = `"${file.sha256}"`;
  reply.headers({
    etag,
    "accept-ranges": "bytes",
    // A file of one key. Shared caches must not keep it. Browsers may, and must ask again once the key could have been deleted.
    "cache-control": "private, no-cache",
    "x-content-type-options": "nosniff",
    // If a browser opens it, nothing in it may run or load.
    "content-security-policy": "default-src 'none'; sandbox",
  });
  if (matchesNone(request.headers["if-none-match"], etag)) return reply.code(304).send();
  const isDownload = queryString(request, "download") === "1";
  reply.headers({
    "content-type": file.mimeType,
    "content-disposition": dispositionOf(isDownload ? "attachment" : "inline", file.fileName),
  });
  if (request.method === "HEAD") return reply.header("content-length", sizeBytes).send();
  const applies = rangeApplies(request.raw.headers["if-range"] as string | undefined, etag);
  const range = wantedRange(applies ? request.headers.range : undefined, sizeBytes);
  if (range.kind === "unsatisfiable") {
    refuse(ErrorReason.RANGE_NOT_SATISFIABLE, { metadata: { size_bytes: String(sizeBytes) } });
  }
  const part = range.kind === "part" ? { start: range.start, end: range.end } : undefined;
  await edge.downloads.take(request, reply);
  const bytes = await openBlob(edge, file.blobKey, part);
  if (part) {
    reply.code(206).header("content-range", `bytes ${part.start}-${part.end}/${sizeBytes}`);
  }
  reply.header("content-length", part ? part.end - part.start + 1 : sizeBytes);
  return sendStream(edge, reply, bytes);
}

/** Opens a located file. Refuses with FILE_NOT_FOUND where it was deleted meanwhile. */
export async function openBlob(edge: Edge, key: string, range: ByteRange | undefined) {
  try {
    return await edge.blobs.openRead(key, range);
  } catch (error) {
    // Deleted between the two steps.
    if (error instanceof BlobNotFoundError) refuse(ErrorReason.FILE_NOT_FOUND, { cause: error });
    throw error;
  }
}

/** The part of a file in a Range header: all of it, a part (bounds inclusive), or one that the file does not have. */
type WantedRange =
  | { kind: "whole" }
  | { kind: "part"; start: number; end: number }
  | { kind: "unsatisfiable" };

const whole: WantedRange = { kind: "whole" };
const unsatisfiable: WantedRange = { kind: "unsatisfiable" };

/**
 * Reads a Range header (RFC 9110, 14.2). A header that is no single range of bytes (another unit, several ranges, bad syntax) is
 * ignored, as the RFC allows. Then the answer is the whole file.
 */
export function wantedRange(header: string | undefined, sizeBytes: number): WantedRange {
  const match = /^bytes=\s*(\d*)-(\d*)\s*$/i.exec(header ?? "");
  if (!match) return whole;
  const [, first = "", last = ""] = match;
  if (first === "") {
    if (last === "") return whole;
    const length = Math.min(Number(last), sizeBytes);
    return length === 0 ? unsatisfiable : part(sizeBytes - length, sizeBytes - 1);
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return whole;
  if (start >= sizeBytes) return unsatisfiable;
  return part(start, last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1));
}

/** Does If-None-Match name this entity, by the weak comparison of GET and HEAD? `etag` has its quotes. */
export function matchesNone(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  if (header.trim() === "*") return true;
  return header.split(",").some((one) => one.trim().replace(/^W\//, "") === etag);
}

/** May a Range apply under this If-Range, by strong comparison? A date never matches. */
export function rangeApplies(ifRange: string | undefined, etag: string): boolean {
  return ifRange === undefined || ifRange.trim() === etag;
}

function part(start: number, end: number): WantedRange {
  return { kind: "part", start, end };
}
