// The operation that lists jobs of all kinds. Media answers it.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { JobKind, JobStatus } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { kindFilter, readJobDocument, readsAllJobs, statusFilter } from "../../jobs.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { queryLimit, queryOneOf, queryRange, queryString, rangeProperties } from "../../query.ts";
import { callOptions } from "../../request.ts";
import {
  arrayOf,
  boolean,
  integer,
  json,
  object,
  type RouteSchema,
  ref,
  string,
  stringOrNull,
} from "../../schemas.ts";

const listJobsSchema: RouteSchema = {
  operationId: "listJobs",
  summary: "List jobs",
  description:
    "The key's jobs of all kinds, newest first; of all keys of the account for a key with the scope `jobs:read-all`, each with " +
    "its `keyId`. `after` and `before` are ids of jobs in the list, such as `last_id` and `first_id` of a page; at most one of " +
    "them and `cursor` is sent.",
  tags: ["Jobs"],
  querystring: object({
    limit: integer("Jobs a page; of jobs with much metadata it may have fewer, with `has_more`.", {
      minimum: 1,
      maximum: pageLimits.jobs.most,
      default: pageLimits.jobs.default,
    }),
    after: string("A job's id: the next older jobs."),
    before: string("A job's id: the next newer jobs."),
    cursor: string("`nextCursor` of the page before; like `after`, but the job may be gone."),
    status: string("Only these.", { enum: ["queued", "running", "completed", "failed"] }),
    kind: string("Only these.", { enum: ["image", "video", "music"] }),
    model: string("Only jobs of this model."),
    ...rangeProperties("were submitted"),
  }),
  response: {
    200: json(
      "A page.",
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(ref("Job"), "Jobs."),
          first_id: stringOrNull("First of the page."),
          last_id: stringOrNull("Last of the page."),
          has_more: boolean("True where more follow, in the direction that was asked for."),
          hasMore: boolean("The same."),
          nextCursor: stringOrNull("For the next page; none with `before`."),
        },
        ["object", "data", "first_id", "last_id", "has_more", "hasMore", "nextCursor"],
      ),
    ),
    ...errors(...queryReasons),
  },
};

/**
 * `GET /jobs`: the key's jobs of all kinds, newest first. Any valid key may call it, because they are its own. A key that may read all
 * jobs of the account gets those.
 */
export function listJobs(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/jobs",
    config: { reads: true },
    schema: listJobsSchema,
    handler: async (request, reply) => {
      const { jobs, nextPageToken, hasMore } = await edge.peers.media.listJobs(
        {
          pageSize: queryLimit(request, pageLimits.jobs),
          ...positionOf(request),
          status: queryOneOf(request, "status", statusFilter) ?? JobStatus.UNSPECIFIED,
          kind: queryOneOf(request, "kind", kindFilter) ?? JobKind.UNSPECIFIED,
          model: queryString(request, "model") ?? "",
          allKeys: readsAllJobs(request),
          ...queryRange(request),
        },
        callOptions(request, reply, deadlinesMs.quick),
      );
      const baseUrl = edge.urls.base(request);
      // A media service of an earlier version shows it by the token alone.
      const isMore = hasMore || nextPageToken !== "";
      return reply.send({
        object: "list",
        data: jobs.map((job) => readJobDocument(request, job, baseUrl)),
        first_id: jobs[0]?.jobId ?? null,
        last_id: jobs.at(-1)?.jobId ?? null,
        has_more: isMore,
        hasMore: isMore,
        nextCursor: nextPageToken || null,
      });
    },
  });
}

/** The place where the page begins or ends. */
function positionOf(request: FastifyRequest) {
  const sent = positions.filter((name) => queryString(request, name) !== undefined);
  if (sent.length > 1) {
    refuse(ErrorReason.INVALID_VALUE, {
      param: sent[1] ?? "",
      message: "Send at most one of 'after', 'before' and 'cursor'.",
    });
  }
  const [after = "", before = "", pageToken = ""] = positions.map((name) =>
    queryString(request, name),
  );
  return { after, before, pageToken };
}

const positions = ["after", "before", "cursor"] as const;
