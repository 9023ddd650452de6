// The operation that changes a key of the caller's account. Auth does it, and billing keeps its alert.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { bodyReasons, errors } from "../../error-answers.ts";
import {
  keyAnswer,
  keyBodyFields,
  keyDocument,
  keyParams,
  lowBalanceField,
  setLowBalance,
} from "../../keys.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { callOptions, noteIgnored } from "../../request.ts";
import { boolean, object, type RouteSchema } from "../../schemas.ts";

const updateKeySchema: RouteSchema = {
  operationId: "updateKey",
  summary: "Change a key",
  description:
    "What is not named stays. In force within a second; jobs and streams that run end and are charged. What is named " +
    "cannot exceed the key that asks, nor can a key that is enabled again. Needs the scope `keys`.",
  tags: ["Keys"],
  params: keyParams,
  body: object({
    ...keyBodyFields,
    lowBalanceUsdMicros: lowBalanceField,
    disabled: boolean("True: it is refused like a deleted one, until it is enabled again."),
  }),
  response: {
    200: keyAnswer("The key after it."),
    ...errors(...bodyReasons, ErrorReason.KEY_NOT_FOUND),
  },
};

/** `PATCH /keys/{keyId}`: changes a key of the account. */
export function updateKey(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { keyId: string } }>({
    method: "PATCH",
    url: "/keys/:keyId",
    config: { scope: Scope.KEYS, asksSecret: true },
    schema: updateKeySchema,
    handler: async (request, reply) => {
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.settings);
      const options = callOptions(request, reply, deadlinesMs.quick);
      const { key, ignoredParameters, lowBalance } = await edge.peers.auth.updateManagedKey(
        { keyId: request.params.keyId, body },
        options,
      );
      if (key) await setLowBalance(edge, key, lowBalance, options);
      noteIgnored(reply, ignoredParameters);
      return reply.send({ data: await keyDocument(edge, request, reply, key) });
    },
  });
}
