import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, isRefusal, RefusalError } from "#kit/errors.ts";
import type { Edge } from "../../context.ts";
import { toErrorBody } from "../../errors.ts";
import { followJob } from "../../follow-job.ts";
import { statusName } from "../../job-kinds.ts";
import { deadlinesMs } from "../../limits.ts";
import { toJobDocument } from "../../mappers/job.ts";
import { callOptions, stopping } from "../../request.ts";
import { watchJobSchema } from "../../schemas/jobs.ts";
import { type EventStream, eventText, openEventStream, watchSilence } from "../../sse.ts";

/**
 * `GET /jobs/{jobId}/events`: the job now and at each change, as `job.queued`, `job.running`, `job.completed` or
 * `job.failed` with the whole document; ends after the last, whatever becomes of the replicas of media meanwhile. A caller
 * that reconnects misses nothing that matters.
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
      using silence = watchSilence(edge.clock, () => events?.comment());
      try {
        for await (const job of followJob(edge, request.params.jobId, options)) {
          if (!job) continue;
          silence.broken();
          events ??= openEventStream(reply);
          const event = `job.${statusName(job.status)}`;
          await events.write(eventText(event, toJobDocument(job, baseUrl)));
        }
      } catch (error) {
        if (!events) throw options.signal.aborted ? options.signal.reason : error;
        const refusal = refusalOfEnd(edge, error, reply);
        await events.write(eventText("error", { error: toErrorBody(refusal) }));
      }
      events?.end();
      return reply;
    },
  });
}

/** The headers with which the events would come, at once: nothing is watched for them. */
async function headOfWatch(
  edge: Edge,
  request: FastifyRequest<{ Params: { jobId: string } }>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const { jobId } = request.params;
  await edge.peers.media.getJob({ jobId }, callOptions(request, reply, deadlinesMs.quick));
  openEventStream(reply).end();
  return reply;
}

function refusalOfEnd(edge: Edge, error: unknown, reply: FastifyReply): RefusalError {
  if (edge.cutOff?.aborted) return stopping();
  if (isRefusal(error)) return error;
  if (!reply.raw.destroyed) edge.events.faulted(error, reply.request.id, "/v1/jobs/:jobId/events");
  return new RefusalError(ErrorReason.INTERNAL_ERROR);
}
