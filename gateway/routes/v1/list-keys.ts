// The operation that lists the keys of the caller's account. Auth answers it, and billing adds their charges.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors, queryReasons } from "../../error-answers.ts";
import { keyDocuments } from "../../keys.ts";
import { deadlinesMs, pageLimits } from "../../limits.ts";
import { queryLimit, queryOneOf, queryString } from "../../query.ts";
import { callOptions } from "../../request.ts";
import { arrayOf, boolean, integer, json, object, type RouteSchema, ref } from "../../schemas.ts";

const listKeysSchema: RouteSchema = {
  operationId: "listKeys",
  summary: "List keys",
  description: "The keys of the account, newest first, a hundred a page. Needs the scope `keys`.",
  tags: ["Keys"],
  querystring: object({
    offset: integer("How many to pass over.", { minimum: 0, default: 0 }),
    include_disabled: boolean("Also those that are disabled.", { default: false }),
    limit: integer("Keys a page.", {
      minimum: 1,
      maximum: pageLimits.keys.most,
      default: pageLimits.keys.default,
    }),
  }),
  response: {
    200: json("A page.", object({ data: arrayOf(ref("Key"), "Keys.") }, ["data"])),
    ...errors(...queryReasons),
  },
};

/** `GET /keys`: the keys of the account that are not deleted. */
export function listKeys(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/keys",
    config: { scope: Scope.KEYS, reads: true },
    schema: listKeysSchema,
    handler: async (request, reply) => {
      const { keys } = await edge.peers.auth.listOwnKeys(
        {
          offset: readOffset(request),
          includeDisabled:
            queryOneOf(request, "include_disabled", { true: true, false: false }) ?? false,
          pageSize: queryLimit(request, pageLimits.keys),
        },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send({ data: await keyDocuments(edge, request, reply, keys) });
    },
  });
}

function readOffset(request: FastifyRequest): number {
  const text = queryString(request, "offset");
  if (text === undefined) return 0;
  if (!/^\d{1,9}$/.test(text)) refuse(ErrorReason.INVALID_TYPE, { param: "offset" });
  return Number(text);
}
