// The operation that downloads a stored speech. `files.ts` sends it.

import type { FastifyInstance } from "fastify";
import { soundTypes } from "#kit/sound/formats.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { FileArea } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { downloadAnswers } from "../../error-answers.ts";
import { sendFile } from "../../files.ts";
import { downloadHeaders, downloadQuery, object, type RouteSchema, string } from "../../schemas.ts";

const downloadSpeechSchema: RouteSchema = {
  operationId: "downloadSpeech",
  summary: "Download speech",
  description: "Needs the key that made it.",
  tags: ["Speech"],
  params: object({ speechId: string("The speech."), fileId: string("The file.") }, [
    "speechId",
    "fileId",
  ]),
  querystring: downloadQuery,
  headers: downloadHeaders,
  response: downloadAnswers(...Object.values(soundTypes)),
};

/** `GET|HEAD /speech/generations/{speechId}/files/{fileId}`: the audio of a speech of the key. */
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
