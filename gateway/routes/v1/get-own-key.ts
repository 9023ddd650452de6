// The operation that shows the caller's own key. Auth answers it, and billing adds its charges.

import type { FastifyInstance } from "fastify";
import { toOwnKeyDocument } from "#common/documents/key-document.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { ownKeySchema, usageOfKeys } from "../../keys.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { json, object, type RouteSchema } from "../../schemas.ts";

const getOwnKeySchema: RouteSchema = {
  operationId: "getOwnKey",
  summary: "Get this key",
  description:
    "What the key of the request may do, and what it was charged. Any valid key may ask.",
  tags: ["Keys"],
  response: { 200: json("The key.", object({ data: ownKeySchema }, ["data"])), ...errors() },
};

/** `GET /key`: the caller's own key. */
export function getOwnKey(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/key",
    schema: getOwnKeySchema,
    handler: async (request, reply) => {
      const options = callOptions(request, reply, deadlinesMs.quick);
      const { key } = await edge.peers.auth.getOwnKey({}, options);
      if (!key) throw new Error("auth answered no key and did not refuse");
      const usageOf = await usageOfKeys(edge, request, reply, [key]);
      return reply.send({ data: toOwnKeyDocument(key, usageOf(key)) });
    },
  });
}
