// The operation that deletes an ended job with its files. Media does it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { changeReasons, errors } from "../../error-answers.ts";
import { familyTags, forEachFamily, jobFamilies, jobIdParam } from "../../jobs.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { boolean, json, object, string } from "../../schemas.ts";

const deleteJobSchemas = forEachFamily((family, { title, one }) => ({
  operationId: `delete${title}Job`,
  summary: `Delete ${one} job`,
  description:
    "Removes a job of the key that has ended, its files and what was written in its request; what it cost stays in the ledger. " +
    "From then on it is 404, also for a submission with its `Idempotency-Key`. A job that has not ended is 409: cancel it first.",
  tags: familyTags[family.name],
  params: object(jobIdParam, ["jobId"]),
  response: {
    200: json(
      "It is gone.",
      object({
        id: string("The job."),
        object: string("", { enum: [family.object] }),
        deleted: boolean("True."),
      }),
    ),
    ...errors(...changeReasons, ErrorReason.JOB_NOT_FOUND, ErrorReason.JOB_NOT_DELETABLE),
  },
}));

/** `DELETE /images|videos|music/generations/{jobId}`: removes a job of the key that has ended, with its files. */
export function deleteJob(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route<{ Params: { jobId: string } }>({
      method: "DELETE",
      url: `/${family.path}/generations/:jobId`,
      config: { scope: family.scope },
      schema: deleteJobSchemas[family.name],
      handler: async (request, reply) => {
        const { jobId } = request.params;
        const options = callOptions(request, reply, deadlinesMs.quick);
        await edge.peers.media.deleteJob({ jobId, kind: family.kind }, options);
        return reply.send({ id: jobId, object: family.object, deleted: true });
      },
    });
  }
}
