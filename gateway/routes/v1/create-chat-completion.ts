import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { chatCompletionSchema } from "../../schemas/text.ts";
import { answerText } from "../../text-answer.ts";

/** `POST /chat/completions`: a chat completion, as JSON or as chunks. */
export function createChatCompletion(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/chat/completions",
    config: { scope: Scope.TEXT, idempotent: true },
    schema: chatCompletionSchema,
    handler: (request, reply) => answerText(edge, request, reply, Operation.CHAT_COMPLETIONS),
  });
}
