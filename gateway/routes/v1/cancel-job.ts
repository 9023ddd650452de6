// The operation that cancels a job. Media does it. This only describes, asks and answers.

import type { FastifyInstance } from "fastify";
import { toJobDocument } from "#common/documents/job-document.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { changeReasons, errors } from "../../error-answers.ts";
import { familyTags, forEachFamily, jobFamilies, jobIdParam } from "../../jobs.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { json, object, ref } from "../../schemas.ts";

const cancelJobSchemas = forEachFamily(({ name }, { title, one }) => ({
  operationId: `cancel${title}Job`,
  summary: `Cancel ${one} job`,
  description:
    "Ends a queued or running job of the key: `failed` with `job_cancelled`. Its credits are released, or charged where the " +
    "model's upstream charges for what it has begun. `running` in the answer: its hold is being ended. Cancelling it again answers the same. " +
    "What has ended otherwise, or is being charged, is 409.",
  tags: familyTags[name],
  params: object(jobIdParam, ["jobId"]),
  response: {
    200: json("The job.", ref("Job")),
    ...errors(...changeReasons, ErrorReason.JOB_NOT_FOUND, ErrorReason.JOB_NOT_CANCELLABLE),
  },
}));

/** `POST /images|videos|music/generations/{jobId}/cancel`: ends a job of the key that is not wanted any longer. */
export function cancelJob(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route<{ Params: { jobId: string } }>({
      method: "POST",
      url: `/${family.path}/generations/:jobId/cancel`,
      config: { scope: family.scope },
      schema: cancelJobSchemas[family.name],
      handler: async (request, reply) => {
        const { job } = await edge.peers.media.cancelJob(
          { jobId: request.params.jobId, kind: family.kind },
          callOptions(request, reply, deadlinesMs.quick),
        );
        if (!job) throw new Error("media cancelled no job and did not refuse");
        return reply.send(toJobDocument(job, edge.urls.base(request)));
      },
    });
  }
}
