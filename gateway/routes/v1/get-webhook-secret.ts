// The operation that shows the secret of an account's webhooks. Media keeps it.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { callOptions } from "../../request.ts";
import { json, type RouteSchema, ref } from "../../schemas.ts";
import { toSecretDocument } from "../../webhooks.ts";

const getWebhookSecretSchema: RouteSchema = {
  operationId: "getWebhookSecret",
  summary: "Get the webhook secret",
  description:
    "What the account's webhooks are signed with; made when it is first asked for. Needs the scope `webhooks`, which is never implied.",
  tags: ["Webhooks"],
  response: { 200: json("The secret.", ref("WebhookSecret")), ...errors() },
};

/** `GET /webhooks/secret`: the secret that signs the account's webhooks. */
export function getWebhookSecret(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/webhooks/secret",
    config: { scope: Scope.WEBHOOKS, asksSecret: true },
    schema: getWebhookSecretSchema,
    handler: async (request, reply) => {
      const answer = await edge.peers.media.getWebhookSecret(
        {},
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.header("cache-control", "no-store").send(toSecretDocument(answer));
    },
  });
}
