// The operation that shows a key of the caller's account. Auth answers it, and billing adds its charges.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { keyAnswer, keyDocument, keyParams } from "../../keys.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import type { RouteSchema } from "../../schemas.ts";

const getKeySchema: RouteSchema = {
  operationId: "getKey",
  summary: "Get a key",
  description: "A key of the account. Another account's, or a deleted one, is 404. Needs `keys`.",
  tags: ["Keys"],
  params: keyParams,
  response: { 200: keyAnswer("The key."), ...errors(ErrorReason.KEY_NOT_FOUND) },
};

/** `GET /keys/{keyId}`: a key of the account. */
export function getKey(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { keyId: string } }>({
    method: "GET",
    url: "/keys/:keyId",
    config: { scope: Scope.KEYS },
    schema: getKeySchema,
    handler: async (request, reply) => {
      const { key } = await edge.peers.auth.getManagedKey(
        { keyId: request.params.keyId },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send({ data: await keyDocument(edge, request, reply, key) });
    },
  });
}
