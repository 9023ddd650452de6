// The operation that shows an account's alerts of low funds. Billing keeps them.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { alertsAnswer, toAlertsDocument } from "../../alerts.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { callerOf, callOptions } from "../../request.ts";
import type { RouteSchema } from "../../schemas.ts";

const getBillingAlertsSchema: RouteSchema = {
  operationId: "getBillingAlerts",
  summary: "Get the account's alerts",
  description:
    "When and where the account is told that its funds run low. Keys have alerts of their own. The address is shown to keys with the " +
    "scope `keys`: it often is a secret.",
  tags: ["Billing"],
  response: { 200: alertsAnswer("What is set."), ...errors() },
};

/** `GET /billing/alerts`: the account's settings for its alerts. */
export function getBillingAlerts(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "GET",
    url: "/billing/alerts",
    config: { scope: Scope.BILLING },
    schema: getBillingAlertsSchema,
    handler: async (request, reply) => {
      const { principal, scopes } = callerOf(request);
      const { accountId } = principal;
      const options = callOptions(request, reply, deadlinesMs.quick);
      const alerts = toAlertsDocument(await edge.peers.billing.getAlerts({ accountId }, options));
      return reply.send(scopes.has(Scope.KEYS) ? alerts : { ...alerts, webhookUrl: null });
    },
  });
}
