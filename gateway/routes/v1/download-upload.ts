// The operation that downloads an uploaded file. `files.ts` sends it.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { downloadAnswers } from "../../error-answers.ts";
import { fileParams, sendFile } from "../../files.ts";
import { downloadHeaders, downloadQuery, type RouteSchema } from "../../schemas.ts";

const downloadUploadSchema: RouteSchema = {
  operationId: "downloadFile",
  summary: "Download a file",
  description: "The bytes of a file of the account.",
  tags: ["Files"],
  params: fileParams,
  querystring: downloadQuery,
  headers: downloadHeaders,
  response: downloadAnswers("image/*"),
};

/** `GET|HEAD /files/{fileId}/content`: the bytes of a file of the account. */
export function downloadUpload(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { fileId: string } }>({
    method: ["GET", "HEAD"],
    url: "/files/:fileId/content",
    config: { scope: Scope.FILES },
    schema: downloadUploadSchema,
    handler: (request, reply) =>
      sendFile(edge, request, reply, {
        area: FileArea.UPLOADS,
        parentId: "",
        fileId: request.params.fileId,
      }),
  });
}
