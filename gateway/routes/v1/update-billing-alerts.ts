// The operation that changes an account's alerts of low funds. Billing does it.

import type { FastifyInstance } from "fastify";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { alertFields, alertsAnswer, toAlertsDocument } from "../../alerts.ts";
import type { Edge } from "../../context.ts";
import { bodyReasons, errors } from "../../error-answers.ts";
import { bodyLimitsBytes, deadlinesMs } from "../../limits.ts";
import { callerOf, callOptions } from "../../request.ts";
import { object, type RouteSchema } from "../../schemas.ts";

const updateBillingAlertsSchema: RouteSchema = {
  operationId: "updateBillingAlerts",
  summary: "Change the account's alerts",
  description:
    "What is not named stays. `balance.low` is told once each time that the available funds fall below the limit, from now on. " +
    "Needs the scope `keys`, for it decides where the account's events go.",
  tags: ["Billing"],
  body: object(alertFields),
  response: { 200: alertsAnswer("What is set after it."), ...errors(...bodyReasons) },
};

/** `PATCH /billing/alerts`: changes when the account gets an alert that its funds run low, and at which address. */
export function updateBillingAlerts(app: FastifyInstance, edge: Edge): void {
  app.route({
    method: "PATCH",
    url: "/billing/alerts",
    config: { scope: Scope.KEYS },
    schema: updateBillingAlertsSchema,
    handler: async (request, reply) => {
      const { accountId } = callerOf(request).principal;
      const body = await edge.bodies.json(request, reply, bodyLimitsBytes.settings);
      const { alerts } = await edge.peers.billing.updateAlerts(
        { accountId, body },
        callOptions(request, reply, deadlinesMs.quick),
      );
      return reply.send(toAlertsDocument(alerts));
    },
  });
}
