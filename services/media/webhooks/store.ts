import { clockSlackMs, type PutOffWork } from "#kit/time/lease-time.ts";
import { bodyKeptMs, pausesMs, webhookKeptMs } from "./limits.ts";
import type { WebhookSecrets } from "./sign.ts";
import type { ListedWebhook, Webhook, WebhookCommand, WebhookType } from "./webhook.ts";

/** Which webhooks of an account; newest first. */
export interface WebhooksQuery {
  accountId: string;
  /** Only those of this key's jobs; default all of the account's. */
  keyId?: string | undefined;
  /** Only those after this one in the order. */
  after: { createdAt: number; webhookId: string } | undefined;
  limit: number;
}

/** Webhooks of an account and type that are more than it may have. */
export interface SurplusWebhooks {
  accountId: string;
  type: WebhookType;
  newest: number;
  limit: number;
}

/** What waits longest of an account's webhooks for one host; `dueAt` may lie ahead. */
export interface FirstOfHost {
  host: string;
  webhookId: string;
  dueAt: number;
}

/**
 * Webhooks and the secrets of accounts. Each method is one transition of one document, atomic and durable when it resolves.
 * All reject with SERVICE_UNAVAILABLE where the store is away; making a transition again is then safe: the worst that comes
 * of it is that a webhook is delivered twice.
 */
export interface WebhookStore extends PutOffWork {
  /** Makes what is missing. */
  open(): Promise<void>;
  /** Writes a webhook down; does nothing where one of its id is there. */
  insert(webhook: Webhook): Promise<void>;
  /** Applies a command (`stepWebhook`). Undefined where its state does not allow that, or there is none. */
  apply(webhookId: string, command: WebhookCommand): Promise<Webhook | undefined>;
  /** Of the first account behind `accountId`, in their order, that has one due: its longest due. By index. */
  nextDue(accountId: string, now: number): Promise<Webhook | undefined>;
  /**
   * Of the first host behind `host`, in their order, that the account has a pending webhook for: the longest due. By index. Leaves
   * out what an earlier version wrote and this one has not changed since, which has no host.
   */
  firstOfNextHost(accountId: string, host: string): Promise<FirstOfHost | undefined>;
  find(webhookId: string): Promise<Webhook | undefined>;
  /** Without their bodies, which are not even read. */
  list(query: WebhooksQuery): Promise<ListedWebhook[]>;
  /** Removes up to `limit` of an account's webhooks of a type beyond its `newest`, in any state, by index. */
  trim(query: SurplusWebhooks): Promise<void>;
  /** Removes up to `limit` whose `expiresAt` has passed, and the bodies of up to `limit` jobs' that had their end `bodyKeptMs` ago; by index. */
  clear(now: number, limit: number): Promise<void>;
  /** Removes up to `limit` of an account, in any state, and its secrets; answers how many went. */
  eraseAccount(accountId: string, limit: number): Promise<number>;
  findSecrets(accountId: string): Promise<WebhookSecrets | undefined>;
  /** Writes an account's first secrets down, or answers those that it has. */
  insertSecrets(secrets: WebhookSecrets): Promise<WebhookSecrets>;
  /** Puts others in their place, where the current one is still `current`. */
  replaceSecrets(current: string, secrets: WebhookSecrets): Promise<boolean>;
}

/** The latest `expiresAt` of those whose bodies are kept no more. */
export function toldUntil(now: number): number {
  return now - bodyKeptMs + webhookKeptMs;
}

/** The time after which no webhook is due that a right clock wrote. */
export function latestWebhookDue(now: number): number {
  return now + Math.max(...pausesMs) + clockSlackMs;
}
