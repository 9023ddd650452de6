import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { createResponseSchema } from "../../schemas/text.ts";
import { answerText } from "../../text-answer.ts";

/** `POST /responses`: a response, as JSON or as events. */
export function createResponse(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/responses",
    config: { scope: Scope.TEXT, idempotent: true },
    schema: createResponseSchema,
    handler: (request, reply) => answerText(edge, request, reply, Operation.RESPONSES),
  });
}
