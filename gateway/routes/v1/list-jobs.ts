import type { FastifyInstance } from "fastify";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { kindFilter, statusFilter } from "../../job-kinds.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { toJobDocument } from "../../mappers/job.ts";
import { queryLimit, queryOneOf, queryString } from "../../query.ts";
import { callOptions } from "../../request.ts";
import { listJobsSchema } from "../../schemas/jobs.ts";

/** `GET /jobs`: the key's jobs of all kinds, newest first. They are its own, so any valid key may ask. */
export function listJobs(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/jobs",
    schema: listJobsSchema,
    handler: async (request, reply) => {
      const { jobs, nextPageToken } = await edge.peers.media.listJobs(
        {
          pageSize: queryLimit(request, pageLimits.jobs),
          pageToken: queryString(request, "cursor") ?? "",
          status: queryOneOf(request, "status", statusFilter) ?? JobStatus.UNSPECIFIED,
          kind: queryOneOf(request, "kind", kindFilter) ?? JobKind.UNSPECIFIED,
        },
        callOptions(request, reply, deadlinesMs.quick),
      );
      const baseUrl = edge.urls.base(request);
      return reply.send({
        object: "list",
        data: jobs.map((job) => toJobDocument(job, baseUrl)),
        hasMore: nextPageToken !== "",
        nextCursor: nextPageToken || null,
      });
    },
  });
}
