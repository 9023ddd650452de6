// Shows in the console what a stored file says of its own origin (C2PA).

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { readInTurns } from "#kit/base/in-turns.ts";
import { type FoundOrigin, hasOrigin, readHeadBytes, readOrigin } from "#kit/provenance/index.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../context.ts";
import { type FileRef, openBlob } from "../files.ts";
import { jobFamilies } from "../jobs.ts";
import { deadlinesMs } from "../limits.ts";
import { callOptions } from "../request.ts";

/**
 * Answers with a file's own words about its origin. Those who may have the file may have them: of an output, the key that
 * made it. To be called in the scope of the API's routes.
 */
export function originRoutes(app: FastifyInstance, edge: Edge): void {
  for (const { path, scope, area } of jobFamilies) {
    app.get<{ Params: { jobId: string; fileId: string } }>(
      `/${path}/generations/:jobId/files/:fileId/origin`,
      { config: { scope } },
      (request, reply) => {
        const { jobId: parentId, fileId } = request.params;
        return sendOrigin(edge, request, reply, { area, parentId, fileId });
      },
    );
  }
  app.get<{ Params: { fileId: string } }>(
    "/files/:fileId/origin",
    { config: { scope: Scope.FILES } },
    (request, reply) => {
      const { fileId } = request.params;
      return sendOrigin(edge, request, reply, { area: FileArea.UPLOADS, parentId: "", fileId });
    },
  );
}

async function sendOrigin(
  edge: Edge,
  request: FastifyRequest,
  reply: FastifyReply,
  name: FileRef,
): Promise<unknown> {
  const options = callOptions(request, reply, deadlinesMs.quick);
  const { blobKey, mimeType, sizeBytes } = await edge.peers.media.locateFile(name, options);
  if (!hasOrigin(mimeType)) return reply.send(toOriginDocument(undefined));
  await edge.downloads.take(request, reply);
  const end = Math.min(Number(sizeBytes), readHeadBytes) - 1;
  const head = await readInTurns(await openBlob(edge, blobKey, { start: 0, end }));
  return reply.send(toOriginDocument(readOrigin(head, mimeType)));
}

function toOriginDocument(found: FoundOrigin) {
  const isRead = found !== undefined && found !== "unreadable";
  return {
    object: "console.file_origin",
    manifest: isRead ? "read" : (found ?? "none"),
    generator: (isRead && found.generator) || null,
    signer: (isRead && found.signer) || null,
    issuer: (isRead && found.issuer) || null,
    madeByAi: isRead && found.madeByAi,
    madeAt: isRead && found.madeAtMs !== undefined ? new Date(found.madeAtMs).toISOString() : null,
  };
}
