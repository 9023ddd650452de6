// The operation that deletes an uploaded file. Media does it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { changeReasons, errors } from "../../error-answers.ts";
import { fileParams } from "../../files.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { boolean, json, object, type RouteSchema, string } from "../../schemas.ts";

const deleteFileSchema: RouteSchema = {
  operationId: "deleteFile",
  summary: "Delete a file",
  description: "Hides it and frees its quota at once.",
  tags: ["Files"],
  params: fileParams,
  response: {
    200: json(
      "It is gone.",
      object({
        id: string("The file."),
        object: string("", { enum: ["file"] }),
        deleted: boolean("True."),
      }),
    ),
    ...errors(...changeReasons, ErrorReason.FILE_NOT_FOUND),
  },
};

/** `DELETE /files/{fileId}`: hides a file and frees its quota at once. */
export function deleteFile(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { fileId: string } }>({
    method: "DELETE",
    url: "/files/:fileId",
    config: { scope: Scope.FILES },
    schema: deleteFileSchema,
    handler: async (request, reply) => {
      const { fileId } = request.params;
      await edge.peers.media.deleteFile({ fileId }, callOptions(request, reply, deadlinesMs.quick));
      return reply.send({ id: fileId, object: "file", deleted: true });
    },
  });
}
