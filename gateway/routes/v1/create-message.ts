import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { messagesErrors } from "../../messages-schemas.ts";
import {
  arrayOf,
  boolean,
  idempotencyHeader,
  integer,
  object,
  type RouteSchema,
  type Schema,
  string,
} from "../../schemas.ts";
import { answerText, ignoredHeader } from "../../text-answer.ts";

const content: Schema = {
  description:
    "Text, or blocks: `text`, `image`, `document`, `search_result` and `tool_result` of the user; `text`, `thinking` and `tool_use` " +
    "of the assistant. Images and PDFs by the model's `inputModalities`.",
  anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }],
};

/** Fields of a request of which the tokens are counted. */
export const messageFields: Record<string, Schema> = {
  model: string("An active chat model."),
  messages: arrayOf(
    object(
      { role: string("Who speaks.", { enum: ["user", "assistant", "system"] }), content },
      ["role", "content"],
      { additionalProperties: true },
    ),
    "The conversation, which ends with a message of the user.",
    { minItems: 1 },
  ),
  system: {
    description:
      "Instructions, kept after the configured developer prompt: a text, or text blocks.",
    anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }],
  },
  tools: arrayOf(
    object(
      {
        type: string(
          "`custom`, or a tool of Anthropic's own that the model takes, like `bash_20250124`.",
        ),
        name: string("Its name."),
        description: string("What it does."),
        input_schema: object({}, [], { additionalProperties: true }),
      },
      ["name"],
      { additionalProperties: true },
    ),
    "Tools that the caller carries out.",
  ),
  tool_choice: object(
    { type: string("Whether a tool is called.", { enum: ["auto", "any", "tool", "none"] }) },
    ["type"],
    { additionalProperties: true },
  ),
  thinking: object(
    { type: string("Whether the model thinks.", { enum: ["enabled", "adaptive", "disabled"] }) },
    ["type"],
    { additionalProperties: true },
  ),
  output_config: object({ effort: string("One of the model's, or the nearest that it has.") }, [], {
    additionalProperties: true,
  }),
};

const messageRequest = object(
  {
    ...messageFields,
    max_tokens: integer(
      "The bound of the output. Above 4,096 it may fall to what the balance pays for, never below 4,096, and " +
        "`x-genmesh-max-tokens` names it then. 0 at an upstream that speaks Messages only fills its cache.",
      { minimum: 0 },
    ),
    stop_sequences: arrayOf(string(""), "Sequences at which the text ends."),
    stream: boolean("True: server-sent events.", { default: false }),
  },
  ["model", "messages", "max_tokens"],
  {
    additionalProperties: true,
    example: {
      model: "chat-1",
      max_tokens: 1024,
      messages: [{ role: "user", content: "Say hello." }],
    },
  },
);

const createMessageSchema: RouteSchema = {
  operationId: "createMessage",
  summary: "Create a message",
  description:
    "Anthropic's Messages, for its clients, on every chat model. With `stream` true: Anthropic's events, " +
    "ended by `message_stop`. The key may come as `x-api-key`. `usage` has `cost` and `costUsdMicros` beside Anthropic's numbers.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: messageRequest,
  response: {
    200: {
      description: "The message.",
      headers: ignoredHeader,
      content: {
        "application/json": { schema: object({ type: string("", { enum: ["message"] }) }) },
        "text/event-stream": { schema: string("Events, ended by `message_stop`.") },
      },
    },
    ...messagesErrors(400, 402, 404, 413, 415, 422, 502, 504, 529),
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
