import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { downloadSpeechSchema } from "../../schemas/speech.ts";
import { sendFile } from "../../send-file.ts";

/** `GET|HEAD /speech/generations/{speechId}/files/{fileId}`: the MP3 of a speech of the key. */
export function downloadSpeech(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { speechId: string; fileId: string } }>({
    method: ["GET", "HEAD"],
    url: "/speech/generations/:speechId/files/:fileId",
    config: { scope: Scope.SPEECH },
    schema: downloadSpeechSchema,
    handler: (request, reply) =>
      sendFile(edge, request, reply, {
        area: FileArea.SPEECH,
        parentId: request.params.speechId,
        fileId: request.params.fileId,
      }),
  });
}
