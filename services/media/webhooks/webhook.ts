import { attemptLeaseMs, deliverForMs, pausesMs, webhookKeptMs } from "./limits.ts";

/** What is told of jobs, and of accounts and keys. */
export const webhookTypes = [
  "job.completed",
  "job.failed",
  "job.cancelled",
  "balance.low",
  "key.limit_reached",
] as const;

/** One of {@link webhookTypes}. */
export type WebhookType = (typeof webhookTypes)[number];

/** How a delivery stands; all but `pending` are its end. */
export type WebhookState =
  | "pending"
  /** The receiver answered 2xx. */
  | "delivered"
  /** No attempt of a day came to a 2xx. */
  | "failed"
  /** The receiver answered 410: it wants no more of it. */
  | "stopped";

/** An event and its way to a receiver, in one document. Times are ms since the epoch. */
export interface Webhook {
  /** "evt_" and what follows in the job's id, or what names an alert: what is announced twice has one webhook. */
  webhookId: string;
  accountId: string;
  /** The key that made the job; undefined where an earlier version wrote this: only those who see the account's see it then. */
  keyId?: string | undefined;
  /** "" for alerts. */
  jobId: string;
  type: WebhookType;
  url: string;
  /** What is signed and sent, the same at every attempt. Empty: a job's, a day after its end. */
  body: string;
  createdAt: number;
  state: WebhookState;
  /** Attempts begun; an attempt that brings an older number was lost, and another one began. */
  attempts: number;
  /** Pending: when the next attempt may begin; while one is under way, when it counts as lost. */
  dueAt: number | undefined;
  /** After this no attempt follows. */
  giveUpAt: number;
  lastAttemptAt: number | undefined;
  /** Status of the last attempt's answer. */
  lastStatus: number | undefined;
  /** Why the last attempt failed: a word of the documentation. */
  lastError: string | undefined;
  /** At its end: when it leaves the log. */
  expiresAt: number | undefined;
}

/** A webhook as a log shows it. */
export type ListedWebhook = Omit<Webhook, "body">;

/** What makes a webhook. */
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

/** Host and port of its receiver. */
export function hostOf({ url }: Pick<Webhook, "url">): string {
  return URL.parse(url)?.host ?? "";
}

/** What an attempt came to. */
export type AttemptResult =
  | { kind: "answered"; status: number }
  /** `error`: a word of the documentation. */
  | { kind: "unanswered"; error: string };

/** Everything that can happen to a webhook. `now` is ms since the epoch. */
export type WebhookCommand =
  /** Due: an attempt begins, and no other process begins one before it counts as lost. */
  | { kind: "begin"; now: number }
  | { kind: "end"; attempt: number; result: AttemptResult; now: number }
  /** By hand, in any state: due at once, for another day. `body`: where it has none any more; not allowed without one. */
  | { kind: "retry"; body?: string | undefined; now: number };

/** The webhook after a command; undefined where its state does not allow that. Changes nothing that it is given. */
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
  // Another process has begun an attempt since: that one's end decides.
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
