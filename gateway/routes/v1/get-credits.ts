// The operation that shows the dollars of an account as OpenRouter does. `get-billing.ts` shows the whole balance.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { callerOf, callOptions } from "../../request.ts";
import { json, number, object, type RouteSchema } from "../../schemas.ts";

const getCreditsSchema: RouteSchema = {
  operationId: "getCredits",
  summary: "Get the dollars paid in and charged",
  description:
    "The dollar wallet of the key's account, in the form in which clients of OpenRouter ask for it. `GET /billing` has both wallets, in " +
    "whole numbers.",
  tags: ["Billing"],
  response: {
    200: json(
      "The dollars.",
      object(
        {
          data: object(
            {
              total_credits: number("US dollars that were ever paid in."),
              total_usage: number("US dollars that were ever charged, less what was given back."),
            },
            ["total_credits", "total_usage"],
          ),
        },
        ["data"],
      ),
      { data: { total_credits: 25, total_usage: 1.250009 } },
    ),
    ...errors(),
  },
};

/** `GET /credits`: the dollars that were paid into an account, and those that it was charged. */
export function getCredits(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/credits",
    config: { scope: Scope.BILLING },
    schema: getCreditsSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const options = callOptions(request, reply, deadlinesMs.quick);
      const { usdMicros } = await edge.peers.billing.getBalance({ accountId }, options);
      return reply.send({
        data: {
          total_credits: dollars(usdMicros?.granted),
          total_usage: dollars(usdMicros?.spent),
        },
      });
    },
  });
}

/** Millionths of a dollar as dollars. Exact to the micro up to nine billion dollars. */
function dollars(micros = 0n): number {
  return Number(micros) / 1_000_000;
}
