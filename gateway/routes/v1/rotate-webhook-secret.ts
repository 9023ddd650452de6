// The operation that gives an account a new secret for its webhooks. Media does it.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { changeReasons, errors, repeatReasons } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions, idempotencyKeyOf, noteReplayed } from "../../request.ts";
import { idempotencyHeader, json, type RouteSchema, ref } from "../../schemas.ts";
import { toSecretDocument } from "../../webhooks.ts";

const rotateWebhookSecretSchema: RouteSchema = {
  operationId: "rotateWebhookSecret",
  summary: "Rotate the webhook secret",
  description:
    "Makes a new secret. For 24 hours webhooks carry a signature by each of the two; a secret from before a further rotation is " +
    "no longer used. Needs the scope `webhooks`, which is never implied. A repeat by the `Idempotency-Key` of the last rotation is answered as that was.",
  tags: ["Webhooks"],
  headers: idempotencyHeader,
  response: {
    200: json("The new secret, and the one before.", ref("WebhookSecret")),
    ...errors(...changeReasons, ...repeatReasons),
  },
};

/** `POST /webhooks/secret/rotate`: gives the account a new secret. */
export function rotateWebhookSecret(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "POST",
    url: "/webhooks/secret/rotate",
    config: { scope: Scope.WEBHOOKS, asksSecret: true },
    schema: rotateWebhookSecretSchema,
    handler: async (request, reply) => {
      const key = idempotencyKeyOf(request);
      const answer = await edge.peers.media.rotateWebhookSecret(
        key === undefined ? {} : { idempotencyKey: key },
        callOptions(request, reply, deadlinesMs.quick),
      );
      noteReplayed(reply, answer.replayed);
      return reply.header("cache-control", "no-store").send(toSecretDocument(answer));
    },
  });
}
