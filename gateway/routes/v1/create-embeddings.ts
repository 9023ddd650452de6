// The operation of embeddings. The text service does it, by `text-answer.ts`.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import {
  arrayOf,
  boolean,
  costFields,
  idempotencyHeader,
  integer,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";
import { answerText, ignoredHeader, textErrors } from "../../text-answer.ts";

const createEmbeddingsSchema: RouteSchema = {
  operationId: "createEmbeddings",
  summary: "Create embeddings",
  description:
    "A vector for each input, charged by input tokens. `usage.estimated` is true where the upstream reported no usage " +
    "that can be right: then it is our count, which is charged.",
  tags: ["Text"],
  headers: idempotencyHeader,
  body: object(
    {
      model: string("An active embedding model."),
      input: {
        description: "A text or its tokens, or a list of either, up to the model's `maxInputs`.",
        anyOf: [
          { type: "string" },
          { type: "array", items: { anyOf: [{ type: "string" }, { type: "integer" }] } },
          { type: "array", items: { type: "array", items: { type: "integer" } } },
        ],
      },
      dimensions: integer("Numbers of a vector, where the model can choose.", { minimum: 1 }),
      encoding_format: string("How vectors come.", { enum: ["float", "base64"] }),
      user: string("Passed on."),
    },
    ["model", "input"],
    { additionalProperties: true, example: { model: "embedding-1", input: "Hello." } },
  ),
  response: {
    200: {
      description: "The vectors, in the order of the inputs.",
      headers: ignoredHeader,
      content: {
        "application/json": {
          schema: object(
            {
              object: string("", { enum: ["list"] }),
              model: string("Model id."),
              data: arrayOf(
                object({
                  object: string("", { enum: ["embedding"] }),
                  index: integer("Of the input."),
                  embedding: {
                    description: "Numbers, or base64 of them as 32-bit floats.",
                    anyOf: [{ type: "array", items: { type: "number" } }, { type: "string" }],
                  },
                }),
                "Vectors.",
              ),
              usage: object({
                prompt_tokens: integer("Tokens of all inputs."),
                total_tokens: integer("The same."),
                estimated: boolean("True: counted by us."),
                ...costFields,
              }),
            },
            ["object", "model", "data", "usage"],
          ),
        },
      },
    },
    ...textErrors,
  },
};

/** `POST /embeddings`: vectors of texts, by an upstream. */
export function createEmbeddings(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/embeddings",
    config: { scope: Scope.TEXT, idempotent: true },
    schema: createEmbeddingsSchema,
    handler: (request, reply) => answerText(edge, request, reply, Operation.EMBEDDINGS),
  });
}
