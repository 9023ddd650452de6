// The operation that sends a webhook again. Media does it.

import type { FastifyInstance } from "fastify";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { changeReasons, errors } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { callerOf, callOptions } from "../../request.ts";
import { json, object, type RouteSchema, ref, string } from "../../schemas.ts";
import { toWebhookDocument } from "../../webhooks.ts";

const retryWebhookSchema: RouteSchema = {
  operationId: "retryWebhook",
  summary: "Send a webhook again",
  description:
    "One of the key's webhooks; any of the account's for a key with the scope `webhooks`. Whatever became of it, it is sent at once, with the same " +
    "`webhook-id`, and again for 24 hours until it is answered with 2xx.",
  tags: ["Webhooks"],
  params: object({ webhookId: string("The webhook.") }, ["webhookId"]),
  response: {
    200: json("The webhook, which is due.", ref("Webhook")),
    ...errors(...changeReasons, ErrorReason.WEBHOOK_NOT_FOUND),
  },
};

/** `POST /webhooks/{webhookId}/retry`: sends a webhook of the key, or of the account, again. */
export function retryWebhook(app: FastifyInstance, edge: Edge): void {
  app.route<{ Params: { webhookId: string } }>({
    method: "POST",
    url: "/webhooks/:webhookId/retry",
    schema: retryWebhookSchema,
    handler: async (request, reply) => {
      // `jobs:read-all` shows webhooks of other keys, but does not allow acting on them.
      const allKeys = callerOf(request).scopes.has(Scope.WEBHOOKS);
      const { webhook } = await edge.peers.media.retryWebhook(
        { webhookId: request.params.webhookId, allKeys },
        callOptions(request, reply, deadlinesMs.quick),
      );
      if (!webhook) throw new Error("media found no webhook and did not refuse");
      return reply.send(toWebhookDocument(webhook, allKeys));
    },
  });
}
