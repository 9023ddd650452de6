// The operation of Anthropic's Messages. The text service does it, by `text-answer.ts`.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import {
  conversationReasons,
  messagesErrors,
  overloadedAnswer,
  paidTextReasons,
} from "../../error-answers.ts";
import { idempotencyHeader, type RouteSchema, ref } from "../../schemas.ts";
import { answerText, textAnswerSchema } from "../../text-answer.ts";

const createMessageSchema: RouteSchema = {
  operationId: "createMessage",
  summary: "Create a message",
  description:
    "Anthropic's Messages, for its clients, on every chat model. With `stream` true: Anthropic's events, " +
    "ended by `message_stop`. The key may come as `x-api-key`. `usage` has `cost` and `costUsdMicros` beside Anthropic's numbers.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: ref("MessageRequest"),
  response: {
    200: textAnswerSchema("The message.", "Message", "MessageEvent"),
    ...messagesErrors(...paidTextReasons, ...conversationReasons),
    ...overloadedAnswer,
  },
};

/** `POST /messages`: a message, as JSON or as events. */
export function createMessage(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/messages",
    config: { scope: Scope.TEXT, idempotent: true },
    schema: createMessageSchema,
    handler: (request, reply) => answerText(edge, request, reply, Operation.MESSAGES),
  });
}
