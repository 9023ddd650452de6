import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import { maxWebhookRounds } from "./limits.ts";
import { firstSecrets, newWebhookSecret, rotated, type WebhookSecrets } from "./sign.ts";
import type { WebhookStore } from "./store.ts";

/** What the secrets of accounts need. */
interface SecretsContext {
  clock: Clock;
  store: WebhookStore;
}

/** An account's secrets; the first one is made at its first use. */
export async function secretsOf(
  accountId: string,
  { clock, store }: SecretsContext,
): Promise<WebhookSecrets> {
  const known = await store.findSecrets(accountId);
  if (known) return known;
  return store.insertSecrets(firstSecrets(accountId, newWebhookSecret(), clock.now()));
}

/**
 * Gives an account a new secret; the one before stays valid for a day, the one before that not. So a repeat must not rotate
 * again: by the operation of the last rotation it is answered as that was.
 */
export async function rotateSecrets(
  accountId: string,
  operation: string | undefined,
  context: SecretsContext,
): Promise<{ secrets: WebhookSecrets; replayed: boolean }> {
  const { clock, store } = context;
  for (let round = 0; round < maxWebhookRounds; round++) {
    const before = await secretsOf(accountId, context);
    if (operation !== undefined && before.operation === operation) {
      return { secrets: before, replayed: true };
    }
    const next = rotated(before, newWebhookSecret(), operation, clock.now());
    if (await store.replaceSecrets(before.current, next)) return { secrets: next, replayed: false };
  }
  return refuse(ErrorReason.SERVICE_UNAVAILABLE);
}
