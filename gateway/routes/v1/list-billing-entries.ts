// The operation that lists or exports changes of an account's balance. Billing has the lines.

import type { FastifyInstance } from "fastify";
import { entryDocument } from "#common/documents/entry-document.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { deadlinesMs, exportPage, pageLimits } from "../../limits.ts";
import { exportEntries, exportFormats, exportHeaders, sendMade } from "../../made-files.ts";
import { takeTurn } from "../../plugins/reads.ts";
import { queryLimit, queryOneOf, queryRange, queryString, rangeProperties } from "../../query.ts";
import { callerOf, callOptions } from "../../request.ts";
import {
  arrayOf,
  boolean,
  integer,
  nullable,
  object,
  type RouteSchema,
  string,
} from "../../schemas.ts";
import { refuseCursor, seenKey, usageKinds } from "../../usage-query.ts";

const entrySchema = object(
  {
    id: string("Wallet and number of its entry."),
    object: string("", { enum: ["billing.entry"] }),
    createdAt: string("When it was made.", { format: "date-time" }),
    kind: string("", { enum: ["grant", "charge", "refund"] }),
    unit: string("", { enum: ["usd_micros", "credits"] }),
    amount: integer(
      "Change of what is available; below 0 for a charge, and for a grant that is taken back.",
    ),
    balanceAfter: integer("What is available in the account's wallet after it."),
    keyId: nullable(string("The key that paid.")),
    model: nullable(string("Model id.")),
    requestKind: nullable(string("What was paid for.", { enum: usageKinds })),
    request: nullable(string("`id` of the request in `GET /requests`.")),
    refundOf: nullable(string("Of a refund: `id` of the entry whose charge it gives back.")),
    takeBackOf: nullable(
      string("Of a grant below 0: `id` of the entry whose grant the operator takes back."),
    ),
  },
  ["id", "object", "createdAt", "kind", "unit", "amount", "balanceAfter"],
);

const listBillingEntriesSchema: RouteSchema = {
  operationId: "listBillingEntries",
  summary: "List billing entries",
  description:
    "Everything that changed what is available, newest first, with the balance after it: charges and refunds of the key; for a key " +
    "with the scope `usage:read-all` those of the account, and its grants. `csv` and `jsonl` stream all of them, from `after` on; a " +
    "stream that is cut has no proper end of its body.",
  tags: ["Billing"],
  querystring: object({
    after: string("`nextCursor` of a page: the next older ones."),
    kind: string("Only these.", { enum: ["grant", "charge", "refund"] }),
    ...rangeProperties("were made"),
    format: string("", { enum: ["json", "csv", "jsonl"], default: "json" }),
    limit: integer("Entries a page, of `json`.", {
      minimum: 1,
      maximum: pageLimits.entries.most,
      default: pageLimits.entries.default,
    }),
  }),
  response: {
    200: {
      description: "A page, or all of them.",
      content: {
        "application/json": {
          schema: object(
            {
              object: string("", { enum: ["list"] }),
              data: arrayOf(entrySchema, "Entries."),
              has_more: boolean("More may follow."),
              hasMore: boolean("The same."),
              nextCursor: nullable(string("For `after`.")),
            },
            ["object", "data", "has_more", "hasMore", "nextCursor"],
          ),
        },
        "text/csv": { schema: string("A line of names, then a line for each entry.") },
        "application/jsonl": { schema: string("An entry of the page's shape on each line.") },
      },
    },
    ...errors(...queryReasons),
  },
};

/** `GET /billing/entries`: the changes of the balance. */
export function listBillingEntries(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/billing/entries",
    config: { scope: Scope.BILLING, reads: true },
    schema: listBillingEntriesSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const format = queryOneOf(request, "format", formats) ?? "json";
      const kinds = queryOneOf(request, "kind", kindsOfEntries) ?? [];
      const options = callOptions(request, reply, deadlinesMs.quick);
      const range = queryRange(request);
      const query = { accountId, keyId: seenKey(request) ?? "", kinds, onlyMoney: true, ...range };
      const page = (after: string, pageSize: number) =>
        edge.peers.billing.listLines({ ...query, after, pageSize }, options).catch(refuseCursor);
      const after = queryString(request, "after") ?? "";
      if (format === "json") {
        const { lines, hasMore, nextPageToken } = await page(
          after,
          queryLimit(request, pageLimits.entries),
        );
        return reply.send({
          object: "list",
          data: lines.map(entryDocument),
          has_more: hasMore,
          hasMore,
          nextCursor: nextPageToken || null,
        });
      }
      // Before the headers are sent, so that an error has its own status.
      const first = await page(after, exportPage);
      const furtherPage = async (token: string) => {
        using _turn = await takeTurn(edge.reads, accountId, options.signal);
        return await page(token, exportPage);
      };
      exportHeaders(reply, format, "billing-entries");
      return sendMade(edge, request, reply, exportEntries(format, first, furtherPage));
    },
  });
}

const formats = { json: "json", ...exportFormats } as const;

const kindsOfEntries: Readonly<Record<string, string[]>> = {
  grant: ["grant"],
  refund: ["refund"],
  charge: [...usageKinds],
};
