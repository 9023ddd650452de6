// Says what a webhook is, and how an attempt or a retry changes it. It is pure. The store makes the changes.

import { attemptLeaseMs, deliverForMs, pausesMs, webhookKeptMs } from "./limits.ts";

/** The types of webhooks: of jobs, and of accounts and keys. */
export const webhookTypes = [
  "job.completed",
  "job.failed",
  "job.cancelled",
  "balance.low",
  "key.limit_reached",
] as const;

/** One of {@link webhookTypes}. */
export type WebhookType = (typeof webhookTypes)[number];

/** The state of a delivery. All except `pending` are final. */
export type WebhookState =
  | "pending"
  /** The receiver answered 2xx. */
  | "delivered"
  /** No attempt of a day got a 2xx. */
  | "failed"
  /** The receiver answered 410, so it wants none of it. */
  | "stopped";

/** An event and its delivery to a receiver, in one document. Times are ms since the epoch. */
export interface Webhook {
  /** "evt_" and the rest of the job's id, or the name of an alert. So an event that is announced twice has one webhook. */
  webhookId: string;
  accountId: string;
  /**
   * The key that made the job. Undefined where an earlier version wrote this. Then only callers that see the account's webhooks see
   * it.
   */
  keyId?: string | undefined;
  /** "" for alerts. */
  jobId: string;
  type: WebhookType;
  url: string;
  /** The signed and sent body, the same at every attempt. A job's body becomes empty a day after the webhook's end. */
  body: string;
  createdAt: number;
  state: WebhookState;
  /** The number of attempts begun. An attempt with an older number was lost, and another one began. */
  attempts: number;
  /** Pending: when the next attempt may begin. During an attempt: when it counts as lost. */
  dueAt: number | undefined;
  /** No attempt follows after this time. */
  giveUpAt: number;
  lastAttemptAt: number | undefined;
  /** Status of the last attempt's answer. */
  lastStatus: number | undefined;
  /** The cause of the last attempt's failure, as a word of the documentation. */
  lastError: string | undefined;
  /** After the webhook's end: when it leaves the log. */
  expiresAt: number | undefined;
}

/** A webhook as a log shows it. */
export type ListedWebhook = Omit<Webhook, "body">;

/** The values from which a webhook is made. */
export type NewWebhook = Pick<
  Webhook,
  "webhookId" | "accountId" | "keyId" | "jobId" | "type" | "url" | "body"
>;

/** A webhook that is due at once. */
export function newWebhook(webhook: NewWebhook, now: number): Webhook {
  return {
    ...webhook,
    createdAt: now,
    state: "pending",
    attempts: 0,
    dueAt: now,
    giveUpAt: now + deliverForMs,
    lastAttemptAt: undefined,
    lastStatus: undefined,
    lastError: undefined,
    expiresAt: undefined,
  };
}

/** Host and port of the receiver. */
export function hostOf({ url }: Pick<Webhook, "url">): string {
  return URL.parse(url)?.host ?? "";
}

/** The result of an attempt. */
export type AttemptResult =
  | { kind: "answered"; status: number }
  /** `error`: a word of the documentation. */
  | { kind: "unanswered"; error: string };

/** All commands of a webhook. `now` is ms since the epoch. */
export type WebhookCommand =
  /** The webhook is due: an attempt begins. No other process begins one before it counts as lost. */
  | { kind: "begin"; now: number }
  | { kind: "end"; attempt: number; result: AttemptResult; now: number }
  /**
   * A retry by hand, in any state: due at once, for another day. `body` is given where the webhook has none left. Without any body
   * a retry is refused.
   */
  | { kind: "retry"; body?: string | undefined; now: number };

/** The webhook after a command. Undefined where its state does not allow that. Does not change its arguments. */
export function stepWebhook(webhook: Webhook, command: WebhookCommand): Webhook | undefined {
  const { now } = command;
  const isDue = webhook.dueAt !== undefined && webhook.dueAt <= now;
  switch (command.kind) {
    case "begin":
      if (!isDue) return undefined;
      return {
        ...webhook,
        attempts: webhook.attempts + 1,
        dueAt: now + attemptLeaseMs,
        lastAttemptAt: now,
      };
    case "end":
      return ended(webhook, command);
    case "retry": {
      const body = webhook.body || command.body;
      if (!body) return undefined;
      return {
        ...webhook,
        body,
        state: "pending",
        dueAt: now,
        giveUpAt: now + deliverForMs,
        expiresAt: undefined,
      };
    }
  }
}

type End = Extract<WebhookCommand, { kind: "end" }>;

function ended(webhook: Webhook, { attempt, result, now }: End): Webhook | undefined {
  if (webhook.state !== "pending") return undefined;
  const status = result.kind === "answered" ? result.status : undefined;
  const told = { ...webhook, lastStatus: status, lastError: errorOf(result) };
  const over = { dueAt: undefined, expiresAt: now + webhookKeptMs };
  if (status !== undefined && status >= 200 && status < 300) {
    return { ...told, ...over, state: "delivered" };
  }
  // Another process has begun an attempt since. The end of that attempt decides.
  if (attempt !== webhook.attempts) return undefined;
  if (status === 410) return { ...told, ...over, state: "stopped" };
  if (now >= webhook.giveUpAt) return { ...told, ...over, state: "failed" };
  const pauseMs = pausesMs[Math.min(attempt, pausesMs.length) - 1] ?? 0;
  return { ...told, dueAt: Math.min(now + pauseMs, webhook.giveUpAt) };
}

function errorOf(result: AttemptResult): string | undefined {
  if (result.kind === "unanswered") return result.error;
  if (result.status >= 200 && result.status < 300) return undefined;
  return result.status >= 300 && result.status < 400 ? "redirect" : "status";
}
