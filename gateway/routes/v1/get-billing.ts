// The operation that shows the balance of an account in dollars and credits. Billing answers it. `get-credits.ts` shows the
// dollars in OpenRouter's form.

import type { FastifyInstance } from "fastify";
import type { GetBalanceResponse, Wallet } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Edge } from "../../context.ts";
import { errors } from "../../error-answers.ts";
import { deadlinesMs } from "../../limits.ts";
import { callerOf, callOptions } from "../../request.ts";
import { integer, json, object, type RouteSchema, string } from "../../schemas.ts";

const micros = (description: string) => integer(`${description}, in millionths of a US dollar.`);

const getBillingSchema: RouteSchema = {
  operationId: "getBilling",
  summary: "Get the balance",
  description:
    "The prepaid wallets of the key's account: US dollars pay for text and speech, credits for image, video and music jobs.",
  tags: ["Billing"],
  response: {
    200: json(
      "The balance.",
      object(
        {
          object: string("", { enum: ["billing.balance"] }),
          availableUsdMicros: micros("Funded balance"),
          reservedUsdMicros: micros("Sum of what is held for requests in flight"),
          spendableUsdMicros: micros("Available less reserved"),
          monthSpendUsdMicros: micros("Charged in this calendar month (UTC)"),
          credits: object({
            available: integer("Funded credits."),
            reserved: integer("Held for jobs."),
            spendable: integer("Available less reserved."),
            monthSpent: integer("Charged in this calendar month (UTC)."),
          }),
        },
        [
          ...["object", "availableUsdMicros", "reservedUsdMicros", "spendableUsdMicros"],
          ...["monthSpendUsdMicros", "credits"],
        ],
      ),
      {
        object: "billing.balance",
        availableUsdMicros: 25_000_000,
        reservedUsdMicros: 0,
        spendableUsdMicros: 25_000_000,
        monthSpendUsdMicros: 0,
        credits: { available: 10_000, reserved: 0, spendable: 10_000, monthSpent: 0 },
      },
    ),
    ...errors(),
  },
};

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

/** The public document of both wallets. A wallet without entries has zeros. */
function toBalanceDocument({ usdMicros, credits }: GetBalanceResponse) {
  return {
    object: "billing.balance",
    availableUsdMicros: amount(usdMicros, "available"),
    reservedUsdMicros: amount(usdMicros, "reserved"),
    spendableUsdMicros: amount(usdMicros, "spendable"),
    monthSpendUsdMicros: amount(usdMicros, "monthSpent"),
    credits: {
      available: amount(credits, "available"),
      reserved: amount(credits, "reserved"),
      spendable: amount(credits, "spendable"),
      monthSpent: amount(credits, "monthSpent"),
    },
  };
}

// Exact up to 2^53: nine billion dollars.
function amount(
  wallet: Wallet | undefined,
  field: "available" | "reserved" | "spendable" | "monthSpent",
): number {
  return Number(wallet?.[field] ?? 0n);
}
