// The operation that deletes a key of the caller's account. Auth does it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { changeReasons, errors } from "../../error-answers.ts";
import { keyParams } from "../../keys.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { boolean, json, object, type RouteSchema, string } from "../../schemas.ts";

const deleteKeySchema: RouteSchema = {
  operationId: "deleteKey",
  summary: "Delete a key",
  description:
    "Revokes it for good, within a second everywhere. Its outputs are out of reach from then on. Needs the scope `keys`.",
  tags: ["Keys"],
  params: keyParams,
  response: {
    200: json(
      "It is revoked.",
      object({ deleted: boolean("True."), id: string("The key.") }, ["deleted"]),
    ),
    ...errors(...changeReasons, ErrorReason.KEY_NOT_FOUND),
  },
};

/** `DELETE /keys/{keyId}`: deletes a key of the account. */
export function deleteKey(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { keyId: string } }>({
    method: "DELETE",
    url: "/keys/:keyId",
    config: { scope: Scope.KEYS },
    schema: deleteKeySchema,
    handler: async (request, reply) => {
      const { keyId } = request.params;
      await edge.peers.auth.deleteManagedKey(
        { keyId },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send({ deleted: true, id: keyId });
    },
  });
}
