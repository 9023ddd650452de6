// The operation of OpenAI's Chat Completions. The text service does it, by `text-answer.ts`.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { idempotencyHeader, type RouteSchema, ref } from "../../schemas.ts";
import { answerText, conversationErrors, textAnswerSchema } from "../../text-answer.ts";

const chatCompletionSchema: RouteSchema = {
  operationId: "createChatCompletion",
  summary: "Create a chat completion",
  description:
    "Text, and files of models that take them; no images. With `stream` true: OpenAI's chunks, ended by `data: [DONE]`. Reasoning is in `reasoning_content`; " +
    "`usage.estimated` is as in a response.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: ref("ChatCompletionRequest"),
  response: {
    200: textAnswerSchema("The completion.", "ChatCompletion", "ChatEvent"),
    ...conversationErrors,
  },
};

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
