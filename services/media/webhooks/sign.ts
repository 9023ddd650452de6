// Says what the secrets of an account's webhooks are, and which of them sign a message now. It is pure.

import { randomBytes } from "node:crypto";
import { secretGraceMs } from "./limits.ts";

/** The secrets that sign an account's webhooks. Times are ms since the epoch. */
export interface WebhookSecrets {
  accountId: string;
  /** "whsec_" and the base64 of 32 bytes. */
  current: string;
  createdAt: number;
  /** The previous secret, until its time after a rotation is over. */
  previous: { secret: string; until: number } | undefined;
  /** Names the call that made the current secret, where the call may be repeated. */
  operation: string | undefined;
}

/** A secret of 256 bits, in the format of Standard Webhooks. */
export function newWebhookSecret(): string {
  return `whsec_${randomBytes(32).toString("base64")}`;
}

/** An account's first secret. */
export function firstSecrets(accountId: string, secret: string, now: number): WebhookSecrets {
  return { accountId, current: secret, createdAt: now, previous: undefined, operation: undefined };
}

/** The account's secrets with a new one. Two are valid at once, so that a receiver need not change at the same moment. */
export function rotated(
  { accountId, current }: WebhookSecrets,
  secret: string,
  operation: string | undefined,
  now: number,
): WebhookSecrets {
  return {
    accountId,
    current: secret,
    createdAt: now,
    operation,
    previous: { secret: current, until: now + secretGraceMs },
  };
}

/** The previous secret, where it is still valid. */
export function previousOf(
  { previous }: WebhookSecrets,
  now: number,
): WebhookSecrets["previous"] | undefined {
  return previous && previous.until > now ? previous : undefined;
}

/** The secrets that sign a message now. */
export function validSecrets(secrets: WebhookSecrets, now: number): string[] {
  return [secrets.current, previousOf(secrets, now)?.secret].filter((one) => one !== undefined);
}
