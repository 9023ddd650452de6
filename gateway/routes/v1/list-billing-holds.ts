// The operation that lists the open holds of an account. Billing answers it.

import type { FastifyInstance } from "fastify";
import { holdKindName, isoTime, unitName } from "#common/documents/answer-values.ts";
import type { Hold } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
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
  string,
  stringOrNull,
} from "../../schemas.ts";
import { refuseCursor, seenKey } from "../../usage-query.ts";

const listBillingHoldsSchema: RouteSchema = {
  operationId: "listBillingHolds",
  summary: "List what is held",
  description:
    "What is set aside for requests and jobs that run, oldest first: the key's, or the account's for a key with the scope " +
    "`usage:read-all`. Their sum is what `GET /billing` says is reserved.",
  tags: ["Billing"],
  querystring: object({
    after: string("`nextCursor` of the page before."),
    limit: integer("Holds a page.", {
      minimum: 1,
      maximum: pageLimits.holds.most,
      default: pageLimits.holds.default,
    }),
  }),
  response: {
    200: json(
      "A page.",
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(
            object({
              id: string("The hold."),
              object: string("", { enum: ["billing.hold"] }),
              createdAt: string("Since when.", { format: "date-time" }),
              unit: string("", { enum: ["usd_micros", "credits"] }),
              amount: integer("In that unit."),
              kind: string("", { enum: ["text", "speech", "job"] }),
              keyId: string("The key that pays."),
              request: string("The job, the speech, or the `x-request-id` of the text request."),
            }),
            "Holds.",
          ),
          has_more: boolean("More follow."),
          hasMore: boolean("The same."),
          nextCursor: stringOrNull("For `after`."),
        },
        ["object", "data", "has_more", "hasMore", "nextCursor"],
      ),
    ),
    ...errors(...queryReasons),
  },
};

/** `GET /billing/holds`: the open holds, with their purpose and age. */
export function listBillingHolds(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/billing/holds",
    config: { scope: Scope.BILLING, reads: true },
    schema: listBillingHoldsSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const pageToken = queryString(request, "after") ?? "";
      const { holds, nextPageToken } = await edge.peers.billing
        .listAccountHolds(
          {
            accountId,
            keyId: seenKey(request) ?? "",
            pageSize: queryLimit(request, pageLimits.holds),
            pageToken,
          },
          callOptions(request, reply, deadlinesMs.quick),
        )
        .catch(refuseCursor);
      const hasMore = nextPageToken !== "";
      return reply.send({
        object: "list",
        data: holds.map(toHoldDocument),
        has_more: hasMore,
        hasMore,
        nextCursor: nextPageToken || null,
      });
    },
  });
}

function toHoldDocument(hold: Hold) {
  return {
    id: hold.holdId,
    object: "billing.hold",
    createdAt: isoTime(hold.openTime),
    unit: unitName(hold.unit),
    amount: Number(hold.amount),
    kind: holdKindName(hold.kind),
    keyId: hold.keyId,
    request: hold.ref,
  };
}
