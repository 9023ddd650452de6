// The operation that downloads a file that a job made. `files.ts` sends it.

import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { downloadAnswers } from "../../error-answers.ts";
import { sendFile } from "../../files.ts";
import { type FamilyName, familyTags, forEachFamily, jobFamilies, jobIdParam } from "../../jobs.ts";
import { downloadHeaders, downloadQuery, object, string } from "../../schemas.ts";

const mediaTypes: Record<FamilyName, string> = {
  image: "image/*",
  video: "video/mp4",
  music: "audio/mpeg",
};

const downloadOutputSchemas = forEachFamily(({ name }, { title, one }) => ({
  operationId: `download${title}`,
  summary: `Download ${one} file`,
  description: "Needs the key that made the job.",
  tags: familyTags[name],
  params: object({ ...jobIdParam, fileId: string("The file.") }, ["jobId", "fileId"]),
  querystring: downloadQuery,
  headers: downloadHeaders,
  response: downloadAnswers(mediaTypes[name]),
}));

/** `GET|HEAD /images|videos|music/generations/{jobId}/files/{fileId}`: an output of a job of the key. */
export function downloadOutput(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route<{ Params: { jobId: string; fileId: string } }>({
      method: ["GET", "HEAD"],
      url: `/${family.path}/generations/:jobId/files/:fileId`,
      config: { scope: family.scope },
      schema: downloadOutputSchemas[family.name],
      handler: (request, reply) =>
        sendFile(edge, request, reply, {
          area: family.area,
          parentId: request.params.jobId,
          fileId: request.params.fileId,
        }),
    });
  }
}
