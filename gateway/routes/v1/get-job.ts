// The operation that shows a job. Media answers it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import {
  familyTags,
  forEachFamily,
  jobFamilies,
  jobIdParam,
  readJobDocument,
  readsAllJobs,
} from "../../jobs.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { json, object, ref } from "../../schemas.ts";

const getJobSchemas = forEachFamily(({ name }, { title, one }) => ({
  operationId: `get${title}Job`,
  summary: `Get ${one} job`,
  description:
    "A job of the key; for a key with the scope `jobs:read-all` any of its account's, with its `keyId`. Another kind's job and one " +
    "that the key may not read are 404.",
  tags: familyTags[name],
  params: object(jobIdParam, ["jobId"]),
  response: { 200: json("The job.", ref("Job")), ...errors(ErrorReason.JOB_NOT_FOUND) },
}));

/** `GET /images|videos|music/generations/{jobId}`: a job that the key may read, under its own kind's path. */
export function getJob(app: FastifyInstance, edge: Edge): void {
  for (const family of jobFamilies) {
    app.route<{ Params: { jobId: string } }>({
      method: "GET",
      url: `/${family.path}/generations/:jobId`,
      config: { scope: family.scope },
      schema: getJobSchemas[family.name],
      handler: async (request, reply) => {
        const { job } = await edge.peers.media.getJob(
          {
            jobId: request.params.jobId,
            kind: family.kind,
            allKeys: readsAllJobs(request),
          },
          callOptions(request, reply, deadlinesMs.quick),
        );
        if (!job) throw new Error("media found no job and did not refuse");
        return reply.send(readJobDocument(request, job, edge.urls.base(request)));
      },
    });
  }
}
