import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { toSpeechDocument } from "../../mappers/speech.ts";
import { callerOf, callOptions, idempotencyKeyOf, notePaid } from "../../request.ts";
import { createSpeechSchema } from "../../schemas/speech.ts";

/** `POST /speech/generations`: a text spoken, stored when answered. */
export function createSpeech(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/speech/generations",
    config: { scope: Scope.SPEECH, idempotent: true },
    schema: createSpeechSchema,
    handler: async (request, reply) => {
      const baseUrl = edge.urls.base(request);
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.other);
      const idempotencyKey = idempotencyKeyOf(request);
      const speech = await edge.peers.media.generateSpeech(
        {
          body,
          admission: callerOf(request).admission,
          ...(idempotencyKey === undefined ? {} : { idempotencyKey }),
        },
        callOptions(request, reply, deadlinesMs.speech),
      );
      notePaid(edge, request);
      if (speech.replayed) reply.header("idempotency-replayed", "true");
      return reply.send(toSpeechDocument(speech, baseUrl));
    },
  });
}
