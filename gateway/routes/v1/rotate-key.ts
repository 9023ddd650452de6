// The operation that gives a key a new secret. Auth does it.

import type { FastifyInstance } from "fastify";
import { toKeyDocument } from "#common/documents/key-document.ts";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { announcesBody } from "../../body.ts";
import type { Edge } from "../../context.ts";
import { bodyReasons, errors, repeatReasons } from "../../error-answers.ts";
import { keyParams, secretAnswer, usageOfKeys } from "../../keys.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { callOptions, noteReplayed, submissionOf } from "../../request.ts";
import { idempotencyHeader, integer, object, type RouteSchema } from "../../schemas.ts";

const rotateKeySchema: RouteSchema = {
  operationId: "rotateKey",
  summary: "Rotate a key",
  description:
    "A new secret under the same id, shown this once. The former stays valid for the grace; one that was former already " +
    "ends at once. After a leak: `graceSeconds` 0. The key cannot do more than the key that asks. A repeat by " +
    "`Idempotency-Key` rotates nothing and shows no secret. Needs the scope `keys`.",
  tags: ["Keys"],
  headers: idempotencyHeader,
  params: keyParams,
  body: object({
    graceSeconds: integer("Seconds for which the former secret stays valid.", {
      minimum: 0,
      maximum: 2_592_000,
      default: 86_400,
    }),
  }),
  response: {
    200: secretAnswer("The key."),
    ...errors(...bodyReasons, ...repeatReasons, ErrorReason.KEY_NOT_FOUND),
  },
};

/** `POST /keys/{keyId}/rotate`: gives a key of the account a new secret. The body may be left out. */
export function rotateKey(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { keyId: string } }>({
    method: "POST",
    url: "/keys/:keyId/rotate",
    config: { scope: Scope.KEYS, idempotent: true, asksSecret: true },
    schema: rotateKeySchema,
    handler: async (request, reply) => {
      const body = announcesBody(request)
        ? await edge.bodies.json(request, reply, bodyLimitsBytes.settings)
        : Buffer.alloc(0);
      const { key, secret, replayed } = await edge.peers.auth.rotateManagedKey(
        { keyId: request.params.keyId, body, ...submissionOf(request) },
        callOptions(request, reply, deadlinesMs.quick),
      );
      noteReplayed(reply, replayed);
      if (!key) throw new Error("auth answered no key and did not refuse");
      // The secret is shown only this once, so it must not be lost where billing does not answer.
      const usageOf = await usageOfKeys(edge, request, reply, [key]).catch(() => () => ({}));
      const data = toKeyDocument(key, usageOf(key));
      return reply.send({ data, key: secret || null });
    },
  });
}
