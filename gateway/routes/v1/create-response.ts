// The operation of OpenAI's Responses over HTTP. The text service does it, by `text-answer.ts`. `connect-responses.ts` offers it
// over a WebSocket.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { idempotencyHeader, type RouteSchema, ref } from "../../schemas.ts";
import { answerText, conversationErrors, textAnswerSchema } from "../../text-answer.ts";

const createResponseSchema: RouteSchema = {
  operationId: "createResponse",
  summary: "Create a response",
  description:
    "With `stream` true: `response.created`, `response.output_item.added`, `response.output_text.delta`, " +
    "`response.output_text.done`, … up to `response.completed`, `response.incomplete` or `response.failed`. Closing " +
    "the connection cancels the request upstream. With an `Idempotency-Key` the stream goes on for 10 s, and a repeat joins it. " +
    "`usage.estimated` is true where the upstream reported no usage that can be right: then it is our count, which is charged.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: ref("ResponseRequest"),
  response: {
    200: textAnswerSchema("The response.", "ResponseObject", "ResponseEvent"),
    ...conversationErrors,
  },
};

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
