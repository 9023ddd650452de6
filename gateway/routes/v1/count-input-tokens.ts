// The operation that counts the tokens of a response's input. The text service counts.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { conversationReasons, errors } from "../../error-answers.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { callerOf, callOptions } from "../../request.ts";
import { integer, json, object, type RouteSchema, ref, string } from "../../schemas.ts";

const countInputTokensSchema: RouteSchema = {
  operationId: "countInputTokens",
  summary: "Count input tokens",
  description:
    "What the input of a `POST /responses` comes to before it is sent, by our count and the price in force: an upstream may count " +
    "otherwise. It costs nothing, and needs no balance.",
  tags: ["Text"],
  body: ref("ResponseRequest"),
  response: {
    200: json(
      "The count.",
      object(
        {
          object: string("", { enum: ["response.input_tokens"] }),
          input_tokens: integer("Tokens."),
          costUsdMicros: integer("What they would be charged, none of them cached."),
          holdUsdMicros: integer(
            "What the request would hold: its input, and `max_output_tokens` or the model's maximum.",
          ),
        },
        ["object", "input_tokens", "costUsdMicros", "holdUsdMicros"],
      ),
    ),
    ...errors(...conversationReasons),
  },
};

/** `POST /responses/input_tokens`: the number of an input's tokens. */
export function countInputTokens(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/responses/input_tokens",
    config: { scope: Scope.TEXT },
    schema: countInputTokensSchema,
    handler: async (request, reply) => {
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.text);
      const { admission } = callerOf(request);
      const counted = await edge.peers.text.countInput(
        { body, admission },
        callOptions(request, reply, deadlinesMs.submit),
      );
      return reply.send({
        object: "response.input_tokens",
        input_tokens: Number(counted.inputTokens),
        costUsdMicros: Number(counted.costUsdMicros),
        holdUsdMicros: Number(counted.holdUsdMicros),
      });
    },
  });
}
