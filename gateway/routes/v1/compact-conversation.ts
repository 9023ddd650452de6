// The operation that compacts a conversation. The text service does it, by `text-answer.ts`.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { idempotencyHeader, type RouteSchema, ref } from "../../schemas.ts";
import { answerText, conversationErrors, ignoredHeader } from "../../text-answer.ts";

const compactSchema: RouteSchema = {
  operationId: "compactConversation",
  summary: "Compact a conversation",
  description: "`output` is sent unchanged as `input` of the next `POST /responses`.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: ref("ResponseRequest"),
  response: {
    200: {
      description: "The compacted items.",
      headers: ignoredHeader,
      content: {
        "application/json": { schema: ref("CompactedResponse") },
      },
    },
    ...conversationErrors,
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
