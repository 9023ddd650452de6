// The public document of an account's alerts of low funds, and its schema. Two routes of billing share it.

import { maxWebhookUrlLength } from "#common/words/request-bounds.ts";
import type { GetAlertsResponse } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { integer, json, nullable, object, string } from "./schemas.ts";

/** Properties of the alerts of an account. */
export const alertFields = {
  lowBalanceUsdMicros: nullable(
    integer("`balance.low` is told when the available funds fall below this; null: it is not.", {
      minimum: 0,
    }),
  ),
  webhookUrl: nullable(
    string(
      "Where it is told, and `key.limit_reached` of keys that have no `webhookUrl`; null: nowhere.",
      { format: "uri", maxLength: maxWebhookUrlLength },
    ),
  ),
};

/** The answer of the operations on them. */
export const alertsAnswer = (description: string) =>
  json(
    description,
    object({ object: string("", { enum: ["billing.alerts"] }), ...alertFields }, [
      "object",
      "lowBalanceUsdMicros",
      "webhookUrl",
    ]),
    {
      object: "billing.alerts",
      lowBalanceUsdMicros: 5_000_000,
      webhookUrl: "https://example.com/hooks/genmesh",
    },
  );

/** The public document. */
export function toAlertsDocument(alerts: GetAlertsResponse | undefined) {
  const lowBalance = alerts?.lowBalanceUsdMicros;
  return {
    object: "billing.alerts",
    // Exact, because it is at most nine billion dollars.
    lowBalanceUsdMicros: lowBalance === undefined ? null : Number(lowBalance),
    webhookUrl: alerts?.webhookUrl || null,
  };
}
