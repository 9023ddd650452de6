// The public documents of webhooks and their secret, and who sees those of other keys.

import type { FastifyRequest } from "fastify";
import { isoTimeOrNull } from "#common/documents/answer-values.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import {
  type GetWebhookSecretResponse,
  type Webhook,
  Webhook_State,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import { callerOf } from "./request.ts";

const statuses: Readonly<Record<Webhook_State, string | undefined>> = {
  [Webhook_State.UNSPECIFIED]: undefined,
  [Webhook_State.PENDING]: "pending",
  [Webhook_State.DELIVERED]: "delivered",
  [Webhook_State.FAILED]: "failed",
  [Webhook_State.STOPPED]: "stopped",
};

/** Does the caller see the webhooks of all keys of its account? */
export function seesAllWebhooks(request: FastifyRequest): boolean {
  const { scopes } = callerOf(request);
  return scopes.has(Scope.WEBHOOKS) || scopes.has(Scope.JOBS_READ_ALL);
}

/** The public document of a webhook. It has its key for readers who see other keys' webhooks too. */
export function toWebhookDocument(webhook: Webhook, withKey: boolean): Record<string, unknown> {
  return {
    id: webhook.webhookId,
    object: "webhook",
    ...(withKey ? { keyId: webhook.keyId || null } : {}),
    type: webhook.type,
    jobId: webhook.jobId || null,
    url: webhook.url,
    status: statuses[webhook.state] ?? "pending",
    attempts: webhook.attempts,
    lastStatus: webhook.lastStatus || null,
    lastError: webhook.lastError || null,
    createdAt: isoTimeOrNull(webhook.createTime),
    lastAttemptAt: isoTimeOrNull(webhook.lastAttemptTime),
    nextAttemptAt: isoTimeOrNull(webhook.nextAttemptTime),
  };
}

/** The public document of an account's secret. A rotation's answer has the same fields. */
export function toSecretDocument(
  answer: Pick<
    GetWebhookSecretResponse,
    "secret" | "createTime" | "previousSecret" | "previousExpireTime"
  >,
): Record<string, unknown> {
  return {
    object: "webhook.secret",
    secret: answer.secret,
    createdAt: isoTimeOrNull(answer.createTime),
    previousSecret: answer.previousSecret || null,
    previousExpiresAt: isoTimeOrNull(answer.previousExpireTime),
  };
}
