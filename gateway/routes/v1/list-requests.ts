// The operation that lists requests and jobs that ended, with what each cost. Billing has the lines.

import type { FastifyInstance } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { queryLimit, queryOneOf, queryRange, queryString, rangeProperties } from "../../query.ts";
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
import {
  filterKeys,
  refuseCursor,
  toRequestDocument,
  usageKinds,
  usageStatuses,
} from "../../usage-query.ts";

const listRequestsSchema: RouteSchema = {
  operationId: "listRequests",
  summary: "List requests",
  description:
    "What the ledger keeps of requests and jobs that ended, newest first: the key's, or the account's for a key with the scope " +
    "`usage:read-all`. A page with a filter that fits few may hold less than `limit`, or nothing, and more follow all the same: " +
    "`has_more` says so.",
  tags: ["Usage"],
  querystring: object({
    after: string("`last_id` or `nextCursor` of a page: the next older ones."),
    before: string("`first_id` of a page: the next newer ones. Not beside `after`."),
    model: string("Only this model's."),
    key: string("Only this key's: the own, or any with `usage:read-all`."),
    status: string("Only those that ended so.", { enum: [...usageStatuses] }),
    kind: string("Only these.", { enum: [...usageKinds] }),
    ...rangeProperties("ended"),
    limit: integer("Requests a page.", {
      minimum: 1,
      maximum: pageLimits.requests.most,
      default: pageLimits.requests.default,
    }),
  }),
  response: {
    200: json(
      "A page.",
      object(
        {
          object: string("", { enum: ["list"] }),
          data: arrayOf(ref("RequestRecord"), "Requests."),
          first_id: stringOrNull("Cursor of the first one."),
          last_id: stringOrNull("Cursor of the last one."),
          has_more: boolean("More may follow, in the direction that was asked for."),
          hasMore: boolean("The same."),
          nextCursor: stringOrNull("For `after` of the next page; none with `before`."),
        },
        ["object", "data", "first_id", "last_id", "has_more", "hasMore", "nextCursor"],
      ),
    ),
    ...errors(...queryReasons, ErrorReason.USAGE_BEING_COUNTED),
  },
};

/** `GET /requests`: the requests of the key, or of its account, charged or not. Any valid key may call it. */
export function listRequests(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/requests",
    config: { reads: true },
    schema: listRequestsSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const after = queryString(request, "after") ?? "";
      const before = queryString(request, "before") ?? "";
      if (after !== "" && before !== "") {
        refuse(ErrorReason.INVALID_VALUE, {
          param: "before",
          message: "Send at most one of 'after' and 'before'.",
        });
      }
      const key = queryString(request, "key");
      const kind = queryOneOf(request, "kind", kinds);
      const { lines, hasMore, nextPageToken } = await edge.peers.billing
        .listLines(
          {
            accountId,
            keyId: filterKeys(request, "key", key === undefined ? [] : [key])?.[0] ?? "",
            model: queryString(request, "model") ?? "",
            status: queryOneOf(request, "status", statuses) ?? "",
            kinds: kind ? [kind] : [...usageKinds],
            pageSize: queryLimit(request, pageLimits.requests),
            after,
            before,
            ...queryRange(request),
          },
          callOptions(request, reply, deadlinesMs.quick),
        )
        .catch(refuseCursor);
      return reply.send({
        object: "list",
        data: lines.map(toRequestDocument),
        first_id: lines[0]?.cursor ?? null,
        last_id: lines.at(-1)?.cursor ?? null,
        has_more: hasMore,
        hasMore,
        nextCursor: nextPageToken || null,
      });
    },
  });
}

const kinds = Object.fromEntries(usageKinds.map((kind) => [kind, kind]));
const statuses = Object.fromEntries(usageStatuses.map((status) => [status, status]));
