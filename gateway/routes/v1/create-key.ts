// The operation that makes a key of the caller's account. Auth makes it, and decides what it may do.

import type { FastifyInstance } from "fastify";
import { toKeyDocument } from "#common/documents/key-document.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { bodyReasons, errors, repeatReasons } from "../../error-answers.ts";
import { keyBodyFields, keyDocument, noUsage, secretAnswer } from "../../keys.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { callOptions, noteIgnored, noteReplayed, submissionOf } from "../../request.ts";
import { idempotencyHeader, object, type RouteSchema } from "../../schemas.ts";

const createKeySchema: RouteSchema = {
  operationId: "createKey",
  summary: "Create a key",
  description:
    "A key of the account, whose secret is shown this once. It cannot do more than the key that makes it; what is not " +
    "named it has from that key, but for `keys`, `webhooks`, `usage:read-all` and `jobs:read-all`, which must be named. A repeat by " +
    "`Idempotency-Key` answers the key without its secret. Needs the scope `keys`.",
  tags: ["Keys"],
  headers: idempotencyHeader,
  body: object(keyBodyFields, ["name"], {
    example: { name: "worker", limit: 5, scopes: ["text", "models"] },
  }),
  response: { 201: secretAnswer("The key."), ...errors(...bodyReasons, ...repeatReasons) },
};

/** `POST /keys`: a new key of the account. */
export function createKey(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/keys",
    config: { scope: Scope.KEYS, idempotent: true, asksSecret: true },
    schema: createKeySchema,
    handler: async (request, reply) => {
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.settings);
      const { key, secret, replayed, ignoredParameters } = await edge.peers.auth.createManagedKey(
        { body, ...submissionOf(request) },
        callOptions(request, reply, deadlinesMs.quick),
      );
      noteIgnored(reply, ignoredParameters);
      noteReplayed(reply, replayed);
      // A new key has no charges yet, so billing need not be available.
      const data =
        key && !replayed
          ? toKeyDocument(key, noUsage)
          : await keyDocument(edge, request, reply, key);
      return reply.code(201).send({ data, key: secret || null });
    },
  });
}
