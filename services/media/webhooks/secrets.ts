// Reads, makes and rotates the secrets of an account in the store. `sign.ts` says what they are.

import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Clock } from "#kit/time/clock.ts";
import { maxWebhookRounds } from "./limits.ts";
import { firstSecrets, newWebhookSecret, rotated, type WebhookSecrets } from "./sign.ts";
import type { WebhookStore } from "./store.ts";

/** Needs of the accounts' secrets. */
interface SecretsContext {
  clock: Clock;
  store: WebhookStore;
}

/** An account's secrets. The first one is made at its first use. */
export async function secretsOf(
  accountId: string,
  { clock, store }: SecretsContext,
): Promise<WebhookSecrets> {
  const known = await store.findSecrets(accountId);
  if (known) return known;
  return store.insertSecrets(firstSecrets(accountId, newWebhookSecret(), clock.now()));
}

/**
 * Gives an account a new secret. The previous secret stays valid for a day, and any older one ends at once. So a repeat must not
 * rotate again. A call with the operation of the last rotation gets the same answer as that rotation.
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
