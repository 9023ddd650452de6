// The operation that counts the tokens of a message's input, in Anthropic's form. The text service counts.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { Operation } from "#proto/genmesh/text/v1/text_service_pb.ts";
import type { Edge } from "../../context.ts";
import { conversationReasons, messagesErrors } from "../../error-answers.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { betasOf, callerOf, callOptions } from "../../request.ts";
import { integer, json, object, type RouteSchema, ref } from "../../schemas.ts";

const countMessageTokensSchema: RouteSchema = {
  operationId: "countMessageTokens",
  summary: "Count a message's input tokens",
  description:
    "What the input of a `POST /messages` comes to before it is sent: by the count of an upstream that speaks Messages, else by " +
    "ours. It costs nothing. A key may ask for ten times as many counts a minute as requests.",
  tags: ["Text"],
  body: ref("MessageCountRequest"),
  response: {
    200: json("The count.", object({ input_tokens: integer("Tokens.") }, ["input_tokens"])),
    ...messagesErrors(...conversationReasons),
  },
};

/** `POST /messages/count_tokens`: the number of a message's input tokens. */
export function countMessageTokens(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/messages/count_tokens",
    config: { scope: Scope.TEXT, rate: "counts" },
    schema: countMessageTokensSchema,
    handler: async (request, reply) => {
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.text);
      const { admission } = callerOf(request);
      const { inputTokens } = await edge.peers.text.countInput(
        { body, admission, operation: Operation.MESSAGES, betas: betasOf(request.headers) },
        callOptions(request, reply, deadlinesMs.submit),
      );
      return reply.send({ input_tokens: Number(inputTokens) });
    },
  });
}
