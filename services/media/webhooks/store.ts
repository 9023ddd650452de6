// Declares what the store of webhooks must promise. `store-documents.ts` keeps the promises.

import { clockSlackMs, type PutOffWork } from "#kit/time/lease-time.ts";
import { bodyKeptMs, pausesMs, webhookKeptMs } from "./limits.ts";
import type { WebhookSecrets } from "./sign.ts";
import type { ListedWebhook, Webhook, WebhookCommand, WebhookType } from "./webhook.ts";

/** Selects webhooks of an account, newest first. */
export interface WebhooksQuery {
  accountId: string;
  /** Only webhooks of this key's jobs. Default: all of the account's. */
  keyId?: string | undefined;
  /** Only webhooks after this one in the order. */
  after: { createdAt: number; webhookId: string } | undefined;
  limit: number;
}

/** The webhooks of an account and type beyond the number that it may have. */
export interface SurplusWebhooks {
  accountId: string;
  type: WebhookType;
  newest: number;
  limit: number;
}

/** The longest waiting webhook of an account for one host. `dueAt` may be in the future. */
export interface FirstOfHost {
  host: string;
  webhookId: string;
  dueAt: number;
}

/**
 * Webhooks and the secrets of accounts. Each method is one transition of one document, atomic and durable when it resolves. All
 * reject with SERVICE_UNAVAILABLE where the store is away. The caller may then repeat the transition: at worst a webhook is
 * delivered twice.
 */
export interface WebhookStore extends PutOffWork {
  /** Makes the missing tables and indexes. */
  open(): Promise<void>;
  /** Stores a webhook. Does nothing where one with its id exists. */
  insert(webhook: Webhook): Promise<void>;
  /** Applies a command (`stepWebhook`). Undefined where the webhook's state does not allow that, or it does not exist. */
  apply(webhookId: string, command: WebhookCommand): Promise<Webhook | undefined>;
  /** The longest due webhook of the first account after `accountId`, in the accounts' order, that has one due. By index. */
  nextDue(accountId: string, now: number): Promise<Webhook | undefined>;
  /**
   * The longest due webhook of an account for the first host after `host`, in the hosts' order, with a pending webhook. By index. A
   * webhook of an earlier version has no host, and is left out until this version changes it.
   */
  firstOfNextHost(accountId: string, host: string): Promise<FirstOfHost | undefined>;
  /** The number of webhooks that are not delivered yet and not given up, of all accounts. By index. */
  waiting(now: number): Promise<number>;
  find(webhookId: string): Promise<Webhook | undefined>;
  /** Webhooks without their bodies, which are not even read. */
  list(query: WebhooksQuery): Promise<ListedWebhook[]>;
  /** Deletes up to `limit` webhooks of an account and type beyond its `newest`, in any state, by index. */
  trim(query: SurplusWebhooks): Promise<void>;
  /**
   * Deletes up to `limit` webhooks whose `expiresAt` has passed. Erases up to `limit` bodies of jobs' webhooks that ended
   * `bodyKeptMs` ago. By index.
   */
  clear(now: number, limit: number): Promise<void>;
  /** Deletes up to `limit` webhooks of an account, in any state, and its secrets. Answers how many were deleted. */
  eraseAccount(accountId: string, limit: number): Promise<number>;
  findSecrets(accountId: string): Promise<WebhookSecrets | undefined>;
  /** Stores an account's first secrets, or answers those that it has. */
  insertSecrets(secrets: WebhookSecrets): Promise<WebhookSecrets>;
  /** Replaces an account's secrets, where the current one is still `current`. */
  replaceSecrets(current: string, secrets: WebhookSecrets): Promise<boolean>;
}

/** The latest `expiresAt` of webhooks whose bodies are no longer kept. */
export function toldUntil(now: number): number {
  return now - bodyKeptMs + webhookKeptMs;
}

/** The latest time at which a webhook can be due, if a correct clock wrote it. */
export function latestWebhookDue(now: number): number {
  return now + Math.max(...pausesMs) + clockSlackMs;
}
