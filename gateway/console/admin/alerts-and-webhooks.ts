// The operator's routes for messages to an account: its alerts and webhooks. `notices.ts` is about notices to the operator.

import type { FastifyInstance } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { settingsBody } from "#kit/base/settings-body.ts";
import type { GetAlertsResponse } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Webhook } from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { Edge } from "../../context.ts";
import { toWebhookDocument } from "../../webhooks.ts";
import { type AdminCall, adminRoute, findAccount, listOf } from "./context.ts";

/** Routes of the messages to accounts: alerts of low funds, and the state of each webhook. */
export function alertAndWebhookRoutes(app: FastifyInstance, edge: Edge): void {
  const alerts = "/accounts/:accountId/alerts";
  adminRoute(app, edge, { method: "GET", url: alerts, handle: showAlerts });
  adminRoute(app, edge, { method: "PATCH", url: alerts, handle: changeAlerts });
  adminRoute(app, edge, {
    ...{ method: "GET", url: "/accounts/:accountId/webhooks" },
    handle: listWebhooks,
  });
  adminRoute(app, edge, {
    ...{ method: "POST", url: "/webhooks/:webhookId/retry" },
    handle: retryWebhook,
  });
}

async function showAlerts(call: AdminCall) {
  // Billing knows wallets, not accounts. It has no alerts of an account that does not exist.
  const { accountId } = await findAccount(call);
  return alertsDocument(await call.peers.billing.getAlerts({ accountId }, call.options));
}

/** The fields of a change, as in PATCH /billing/alerts of the API. */
const changeable = ["lowBalanceUsdMicros", "webhookUrl"];

async function changeAlerts(call: AdminCall) {
  const asked = await call.body();
  const changed = changeable.filter((name) => Object.hasOwn(asked, name)).join(", ");
  const { accountId, closingTime } = await findAccount(call);
  if (closingTime) refuse(ErrorReason.STATE_CONFLICT, { message: "The account is closed." });
  const body = settingsBody(asked);
  const { alerts } = await call.audited(
    { action: "account.alerts", accountId, details: { changed } },
    () => call.peers.billing.updateAlerts({ accountId, body }, call.options),
  );
  return alertsDocument(alerts);
}

function alertsDocument(alerts: GetAlertsResponse | undefined) {
  if (!alerts) throw new Error("billing answered no alerts and did not refuse");
  const { lowBalanceUsdMicros, webhookUrl } = alerts;
  return {
    object: "alerts",
    lowBalanceUsdMicros: lowBalanceUsdMicros ?? null,
    webhookUrl: webhookUrl || null,
  };
}

async function listWebhooks(call: AdminCall) {
  // Media knows webhooks, not accounts. It has none of an account that does not exist.
  const { accountId } = await findAccount(call);
  const asked = { accountId, ...call.page() };
  const found = await call.peers.media.listAccountWebhooks(asked, call.options);
  return listOf(found.webhooks.map(webhookDocument), found.nextPageToken);
}

async function retryWebhook(call: AdminCall) {
  const webhookId = call.param("webhookId");
  const { webhook } = await call.audited(
    { action: "webhook.retry", target: webhookId },
    () => call.peers.media.retryAccountWebhook({ webhookId }, call.options),
    ({ accountId }) => ({ accountId }),
  );
  if (!webhook) throw new Error("media answered no webhook and did not refuse");
  return webhookDocument(webhook);
}

/** A webhook without its address, which may hold a secret of its receiver. The account's own listing shows the address. */
function webhookDocument(webhook: Webhook) {
  const { url: _, ...shown } = toWebhookDocument(webhook, true);
  return shown;
}
