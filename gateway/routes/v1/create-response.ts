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

/** The body of a response, and of a compaction. */
export const responseRequest = object(
  {
    model: string("An active chat model."),
    input: {
      description:
        "Text, messages, or Responses items such as `function_call_output`. Content may be in parts: `input_text`; `input_image` on " +
        "models whose `inputModalities` have `image`; `input_file` (`filename`, and a PDF as `file_data`, a data URI, or at " +
        "`file_url`; `detail`) where they have `pdf`; `input_audio` (`input_audio: {data, format}`, base64 of a `wav` or `mp3`) where " +
        "they have `audio`. Another is 400 `unsupported_content_type`.",
      anyOf: [{ type: "string" }, { type: "array", items: { type: "object" } }],
    },
    instructions: string("Kept after the configured developer prompt."),
    max_output_tokens: integer(
      "Most tokens of output, reasoning and calls included. What goes past it is cut, and the answer is `incomplete`. " +
        "Omitted: the model's maximum, or what balance and key can pay for, at least 1,024.",
      { minimum: 1 },
    ),
    reasoning: object({
      effort: string("One of the model's `reasoningEfforts`, or an alias in any case."),
    }),
    tools: arrayOf({ type: "object" }, "Function tools, `{type: web_search}`, …"),
    stream: boolean("True: server-sent events.", { default: false }),
    starting_after: integer(
      "With the `Idempotency-Key` of a stream that broke off: its events behind this `sequence_number`. 400 where that stream is " +
        "over, or was never there.",
      { minimum: 0 },
    ),
  },
  ["model", "input"],
  { additionalProperties: true, example: { model: "chat-1", input: "Say hello." } },
);

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
  body: responseRequest,
  response: { 200: textAnswerSchema("The response.", "response"), ...textErrors },
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
