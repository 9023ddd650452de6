// Carries alerts about money from billing to the webhooks of media. Neither calls the other: billing writes alerts down, auth
// knows the key's address, and media sends. Gateways run the loop.

import type { Logger } from "#kit/base/logger.ts";
import type { Clock } from "#kit/time/clock.ts";
import type { WaitingAlert } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import type { Peers } from "./peers.ts";

/** Milliseconds between two searches for alerts that wait. */
const lookMs = 1_000;

/** The services that delivering alerts calls. */
type AlertPeers = Pick<Peers, "auth" | "billing" | "media">;

/**
 * Hands each alert of billing to the webhooks of media, for the address that its key or account names now. An alert ends only when its
 * webhook is written down under the alert's own id. So a process that dies in between loses nothing, and a second try writes no second
 * webhook.
 */
export async function deliverWaiting({ auth, billing, media }: AlertPeers): Promise<void> {
  const { alerts } = await billing.listWaitingAlerts({});
  const deliver = async (waiting: WaitingAlert) => {
    const { alertId, accountId, keyId, type, body, accountWebhookUrl } = waiting;
    const ofKey = keyId === "" ? "" : (await auth.getKeyWebhook({ keyId })).webhookUrl;
    const url = ofKey || accountWebhookUrl;
    if (url !== "") {
      // Messages to the key's own address are listed in the key's own log.
      const logged = ofKey === "" ? "" : keyId;
      const event = { webhookId: alertId, accountId, keyId: logged, type, url, body };
      await media.announceEvent(event);
    }
    await billing.endAlert({ alertId });
  };
  // An account's alerts are sent one after the other, beside those of other accounts. One that fails delays only its own account's.
  const ofAccounts = Map.groupBy(alerts, ({ accountId }) => accountId).values();
  const ends = await Promise.allSettled(
    [...ofAccounts].map(async (own) => {
      for (const alert of own) await deliver(alert);
    }),
  );
  const failed = ends.find(({ status }) => status === "rejected");
  if (failed) throw (failed as PromiseRejectedResult).reason;
}

/** Delivers again and again, until `signal` aborts. Never rejects. */
export async function deliverAlerts(
  { clock, log, peers }: { clock: Clock; log: Logger; peers: AlertPeers },
  signal: AbortSignal,
): Promise<void> {
  let failed = false;
  while (!signal.aborted) {
    try {
      await deliverWaiting(peers);
      failed = false;
    } catch (error) {
      if (!failed && !signal.aborted)
        log.warn({ err: error }, "alerts could not be handed over yet");
      failed = true;
    }
    await clock.sleep(lookMs, signal).catch(() => {});
  }
}
