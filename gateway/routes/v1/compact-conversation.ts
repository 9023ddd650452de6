import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { arrayOf, idempotencyHeader, object, type RouteSchema } from "../../schemas.ts";
import { answerText, ignoredHeader, textErrors } from "../../text-answer.ts";
import { responseRequest } from "./create-response.ts";

const compactSchema: RouteSchema = {
  operationId: "compactConversation",
  summary: "Compact a conversation",
  description: "`output` is sent unchanged as `input` of the next `POST /responses`.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: responseRequest,
  response: {
    200: {
      description: "The compacted items.",
      headers: ignoredHeader,
      content: {
        "application/json": {
          schema: object({ output: arrayOf({ type: "object" }, "Items.") }, ["output"]),
        },
      },
    },
    ...textErrors,
  },
};

/** `POST /responses/compact`: a conversation made shorter. */
export function compactConversation(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/responses/compact",
    config: { scope: Scope.TEXT, idempotent: true },
    schema: compactSchema,
    handler: (request, reply) => answerText(edge, request, reply, Operation.COMPACT),
  });
}
