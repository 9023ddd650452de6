// The operation that streams a job's changes as events. `follow-job.ts` follows the job.

import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { statusName } from "#common/documents/job-document.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { toErrorBody } from "../../errors.ts";
import { followJob } from "../../follow-job.ts";
import { jobIdParam, readJobDocument, readsAllJobs } from "../../jobs.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions, noteBroken } from "../../request.ts";
import { object, type RouteSchema } from "../../schemas.ts";
import { type EventStream, eventText, openEventStream } from "../../sse.ts";

const watchJobSchema: RouteSchema = {
  operationId: "watchJob",
  summary: "Watch a job",
  description:
    "The job now and at each change, as an event `job.queued`, `job.running`, `job.completed` or `job.failed` whose " +
    "data is the job. A job that no upstream would take yet is `job.queued` again. The stream ends when the job is " +
    "terminal. A key with the scope `jobs:read-all` may watch any job of its account, each with its `keyId`.",
  tags: ["Jobs"],
  params: object(jobIdParam, ["jobId"]),
  response: {
    200: {
      description: "Events. The `data` of each is a `Job`.",
      // Generated clients take the answer of an operation without another one for what the schema says, and this one is a text.
      content: { "text/event-stream": { schema: { type: "string" } } },
    },
    ...errors(ErrorReason.JOB_NOT_FOUND),
  },
};

/**
 * `GET /jobs/{jobId}/events`: the job now and at each change, as `job.queued`, `job.running`, `job.completed` or `job.failed` with the
 * whole document. The stream ends after the last one, even where replicas of media end meanwhile. A caller that reconnects misses
 * nothing important.
 */
export function watchJob(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { jobId: string } }>({
    method: "GET",
    url: "/jobs/:jobId/events",
    schema: watchJobSchema,
    handler: async (request, reply) => {
      const baseUrl = edge.urls.base(request);
      if (request.method === "HEAD") return headOfWatch(edge, request, reply);
      const options = callOptions(request, reply, deadlinesMs.watch, edge.cutOff);
      let events: EventStream | undefined;
      using silence = edge.silences.watch(() => events?.alive());
      try {
        for await (const job of followJob(edge, askedOf(request), options)) {
          if (!job) continue;
          silence.broken();
          events ??= openEventStream(reply);
          const event = `job.${statusName(job.status)}`;
          await events.write(eventText(event, readJobDocument(request, job, baseUrl)));
        }
      } catch (error) {
        if (!events) throw options.signal.aborted ? options.signal.reason : error;
        const refusal = noteBroken(edge, error, reply);
        await events.write(eventText("error", { error: toErrorBody(refusal) }));
      }
      events?.end();
      return reply;
    },
  });
}

/** The headers that would come with the events, at once. No job is watched for them. */
async function headOfWatch(
  edge: Edge,
  request: FastifyRequest<{ Params: { jobId: string } }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  await edge.peers.media.getJob(askedOf(request), callOptions(request, reply, deadlinesMs.quick));
  openEventStream(reply).end();
  return reply;
}

function askedOf(request: FastifyRequest<{ Params: { jobId: string } }>) {
  return { jobId: request.params.jobId, allKeys: readsAllJobs(request) };
}
