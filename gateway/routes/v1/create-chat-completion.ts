import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import {
  arrayOf,
  boolean,
  idempotencyHeader,
  integer,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";
import { answerText, textAnswerSchema, textErrors } from "../../text-answer.ts";

const chatRequest = object(
  {
    model: string("An active chat model."),
    messages: arrayOf(
      object(
        {
          role: string("Who speaks.", {
            enum: ["system", "developer", "user", "assistant", "tool"],
          }),
          content: {
            description:
              "Text, or text parts, which are joined. In a user's message, by the model's `inputModalities`: `file` " +
              "(`file: {filename, file_data}`, a PDF as a data URI) and `input_audio` (`input_audio: {data, format}`, base64 of a " +
              "`wav` or `mp3`). Images go through `POST /responses`.",
            anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }],
          },
        },
        ["role"],
        { additionalProperties: true },
      ),
      "The conversation.",
      { minItems: 1 },
    ),
    instructions: string("Kept after the configured developer prompt."),
    reasoning_effort: string("As `reasoning.effort`."),
    stop: {
      description: "Sequences at which the text ends; they are not part of it.",
      anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }],
    },
    stream: boolean("True: server-sent events.", { default: false }),
    n: integer("Only 1.", { const: 1, default: 1 }),
  },
  ["model", "messages"],
  {
    additionalProperties: true,
    example: { model: "chat-1", messages: [{ role: "user", content: "Say hello." }] },
  },
);

const chatCompletionSchema: RouteSchema = {
  operationId: "createChatCompletion",
  summary: "Create a chat completion",
  description:
    "Text, and files of models that take them; no images. With `stream` true: OpenAI's chunks, ended by `data: [DONE]`. Reasoning is in `reasoning_content`; " +
    "`usage.estimated` is as in a response.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: chatRequest,
  response: { 200: textAnswerSchema("The completion.", "chat.completion"), ...textErrors },
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
