// The operation that lists webhooks and how their delivery went. Media answers it.

import type { FastifyInstance } from "fastify";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { queryLimit, queryString } from "../../query.ts";
import { callerOf, callOptions } from "../../request.ts";
import {
  arrayOf,
  boolean,
  integer,
  json,
  object,
  type RouteSchema,
  ref,
  string,
  stringOrNull,
} from "../../schemas.ts";
import { seesAllWebhooks, toWebhookDocument } from "../../webhooks.ts";

const listWebhooksSchema: RouteSchema = {
  operationId: "listWebhooks",
  summary: "List webhooks",
  description:
    "What the key's jobs sent, or will send, to the `webhookUrl` of their submissions, newest first; of all keys of the account for a " +
    "key with the scope `webhooks` or `jobs:read-all`, each with its `keyId`. Kept for 30 days.",
  tags: ["Webhooks"],
  querystring: object({
    limit: integer("Webhooks a page.", {
      minimum: 1,
      maximum: pageLimits.webhooks.most,
      default: pageLimits.webhooks.default,
    }),
    cursor: string("`nextCursor` of the page before."),
  }),
  response: {
    200: json(
      "A page.",
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(ref("Webhook"), "Webhooks."),
          hasMore: boolean("True where more follow."),
          nextCursor: stringOrNull("For the next page."),
        },
        ["object", "data", "hasMore", "nextCursor"],
      ),
    ),
    ...errors(...queryReasons),
  },
};

/**
 * `GET /webhooks`: the key's webhooks, newest first. Any valid key may call it, because they are its own. A key that may see all
 * webhooks of the account gets those.
 */
export function listWebhooks(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/webhooks",
    config: { reads: true },
    schema: listWebhooksSchema,
    handler: async (request, reply) => {
      const allKeys = seesAllWebhooks(request);
      const { keyId } = callerOf(request).principal;
      const { webhooks, nextPageToken } = await edge.peers.media.listWebhooks(
        {
          pageSize: queryLimit(request, pageLimits.webhooks),
          pageToken: queryString(request, "cursor") ?? "",
          allKeys,
        },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send({
        object: "list",
        data: webhooks
          // A media service of an earlier version sends the account's webhooks, without keys.
          .filter((webhook) => allKeys || webhook.keyId === keyId)
          .map((webhook) => toWebhookDocument(webhook, allKeys)),
        hasMore: nextPageToken !== "",
        nextCursor: nextPageToken || null,
      });
    },
  });
}
