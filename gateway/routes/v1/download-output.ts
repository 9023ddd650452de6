import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { jobFamilies } from "../../job-kinds.ts";
import { downloadOutputSchemas } from "../../schemas/jobs.ts";
import { sendFile } from "../../send-file.ts";

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
