import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { jobFamilies } from "../../job-kinds.ts";
import { deadlinesMs } from "../../limits.ts";
import { toJobDocument } from "../../mappers/job.ts";
import { callerOf, callOptions, idempotencyKeyOf, notePaid } from "../../request.ts";
import { submitJobSchemas } from "../../schemas/jobs.ts";

/** `POST /images|videos|music/generations`: 202 with the accepted job as it stands at that moment. */
export function submitJob(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route({
      method: "POST",
      url: `/${family.path}/generations`,
      config: { scope: family.scope, idempotent: true },
      schema: submitJobSchemas[family.name],
      handler: async (request, reply) => {
        const baseUrl = edge.urls.base(request);
        const body = await edge.bodies.json(request, reply, family.bodyLimitBytes);
        const idempotencyKey = idempotencyKeyOf(request);
        const { job, replayed } = await edge.peers.media.submitJob(
          {
            kind: family.kind,
            body,
            publicBaseUrl: baseUrl,
            admission: callerOf(request).admission,
            ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
          },
          callOptions(request, reply, deadlinesMs.submit),
        );
        if (!job) throw new Error("media accepted no job");
        notePaid(edge, request);
        if (replayed) reply.header("idempotency-replayed", "true");
        return reply.code(202).send(toJobDocument(job, baseUrl));
      },
    });
  }
}
