import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { deadlinesMs } from "../../limits.ts";
import { toBalanceDocument } from "../../mappers/balance.ts";
import { callerOf, callOptions } from "../../request.ts";
import { getBillingSchema } from "../../schemas/billing.ts";

/** `GET /billing`: both wallets of the key's account. */
export function getBilling(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/billing",
    config: { scope: Scope.BILLING },
    schema: getBillingSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const balance = await edge.peers.billing.getBalance(
        { accountId },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send(toBalanceDocument(balance));
    },
  });
}
