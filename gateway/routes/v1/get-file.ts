// The operation that shows an uploaded file's facts. Media answers it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { fileParams, toFileDocument } from "../../files.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { json, type RouteSchema, ref } from "../../schemas.ts";

const getFileSchema: RouteSchema = {
  operationId: "getFile",
  summary: "Get a file",
  description: "What is known of a file of the account.",
  tags: ["Files"],
  params: fileParams,
  response: { 200: json("The file.", ref("File")), ...errors(ErrorReason.FILE_NOT_FOUND) },
};

/** `GET /files/{fileId}`: a file of the account. */
export function getFile(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { fileId: string } }>({
    method: "GET",
    url: "/files/:fileId",
    config: { scope: Scope.FILES },
    schema: getFileSchema,
    handler: async (request, reply) => {
      const { file } = await edge.peers.media.getFile(
        request.params,
        callOptions(request, reply, deadlinesMs.quick),
      );
      if (!file) throw new Error("media found no file and did not refuse");
      return reply.send(toFileDocument(file));
    },
  });
}
