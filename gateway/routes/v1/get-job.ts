import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { jobFamilies } from "../../job-kinds.ts";
import { deadlinesMs } from "../../limits.ts";
import { toJobDocument } from "../../mappers/job.ts";
import { callOptions } from "../../request.ts";
import { getJobSchemas } from "../../schemas/jobs.ts";

/** `GET /images|videos|music/generations/{jobId}`: a job of the key, under its own kind's path. */
export function getJob(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route<{ Params: { jobId: string } }>({
      method: "GET",
      url: `/${family.path}/generations/:jobId`,
      config: { scope: family.scope },
      schema: getJobSchemas[family.name],
      handler: async (request, reply) => {
        const { job } = await edge.peers.media.getJob(
          { jobId: request.params.jobId, kind: family.kind },
          callOptions(request, reply, deadlinesMs.quick),
        );
        if (!job) throw new Error("media found no job and did not refuse");
        return reply.send(toJobDocument(job, edge.urls.base(request)));
      },
    });
  }
}
