import type { FastifyReply, FastifyRequest } from "fastify";
import { BlobNotFoundError, type ByteRange } from "#kit/blobs.ts";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "./context.ts";
import { deadlinesMs } from "./limits.ts";
import { queryString } from "./query.ts";
import { matchesNone, rangeApplies, wantedRange } from "./ranges.ts";
import { callerOf, callOptions, leavingSignal } from "./request.ts";

/** A private file that a path names. */
export interface FileName {
  area: FileArea;
  /** The job or speech; empty for uploads. */
  parentId: string;
  fileId: string;
}

/**
 * Answers with a private file: asks media where it lies, then pipes the store into the answer. GET takes Range and
 * If-Range; GET and HEAD take If-None-Match; HEAD never opens the store.
 */
export async function sendFile(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  name: FileName,
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
    // A key's own file: shared caches must not keep it, browsers may, and ask again once a key could have been revoked.
    "cache-control": "private, no-cache",
    "x-content-type-options": "nosniff",
    // Should a browser open it: nothing in it may run or load.
    "content-security-policy": "default-src 'none'; sandbox",
  });
  if (matchesNone(request.headers["if-none-match"], etag)) return reply.code(304).send();
  reply.headers({
    "content-type": file.mimeType,
    "content-disposition": disposition(queryString(request, "download") === "1", file.fileName),
  });
  if (request.method === "HEAD") return reply.header("content-length", sizeBytes).send();
  const applies = rangeApplies(request.raw.headers["if-range"] as string | undefined, etag);
  const range = wantedRange(applies ? request.headers.range : undefined, sizeBytes);
  if (range.kind === "unsatisfiable") {
    refuse(ErrorReason.RANGE_NOT_SATISFIABLE, { metadata: { size_bytes: String(sizeBytes) } });
  }
  const part = range.kind === "part" ? { start: range.start, end: range.end } : undefined;
  await takeTurn(edge, request, reply);
  const bytes = await openBlob(edge, file.blobKey, part);
  if (part) {
    reply.code(206).header("content-range", `bytes ${part.start}-${part.end}/${sizeBytes}`);
  }
  reply.header("content-length", part ? part.end - part.start + 1 : sizeBytes);
  return reply.send(bytes);
}

/** Waits for the account's turn at sending a file; it ends with the answer. */
async function takeTurn(edge: Edge, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { accountId } = callerOf(request).principal;
  const turn = await edge.downloads.take(accountId, leavingSignal(reply));
  const end = () => turn[Symbol.dispose]();
  if (reply.raw.destroyed) end();
  else reply.raw.once("close", end);
}

async function openBlob(edge: Edge, key: string, range: ByteRange | undefined) {
  try {
    return await edge.blobs.openRead(key, range);
  } catch (error) {
    // Deleted between the two steps.
    if (error instanceof BlobNotFoundError) refuse(ErrorReason.FILE_NOT_FOUND, { cause: error });
    throw error;
  }
}

function disposition(attachment: boolean, fileName: string): string {
  const safe = fileName.replace(/[^A-Za-z0-9._ -]/g, "_");
  return `${attachment ? "attachment" : "inline"}; filename="${safe}"`;
}
