// Answers the methods about webhooks: lists, retries, the account's secret, and alerts that other services announce.

import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { checkIdempotencyKey } from "#common/words/idempotency.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { accountOrKeyIdPattern } from "#kit/base/ids.ts";
import { isOutsideUrl } from "#kit/outside/url.ts";
import { principalOf } from "#kit/rpc/principal.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type MediaService,
  Webhook_State,
  type Webhook as WebhookMessage,
  WebhookSchema,
} from "#proto/genmesh/media/v1/media_service_pb.ts";
import type { JobStore } from "../jobs/store.ts";
import { messageOf, writeDown } from "./announce.ts";
import { webhookPage } from "./limits.ts";
import { rotateSecrets, secretsOf } from "./secrets.ts";
import { previousOf, type WebhookSecrets } from "./sign.ts";
import type { WebhookStore } from "./store.ts";
import {
  type ListedWebhook,
  newWebhook,
  type Webhook,
  type WebhookState,
  webhookTypes,
} from "./webhook.ts";

/** The RPCs of MediaService for webhooks. */
export type WebhookMethods = Pick<
  ServiceImpl<typeof MediaService>,
  | "listWebhooks"
  | "retryWebhook"
  | "getWebhookSecret"
  | "rotateWebhookSecret"
  | "listAccountWebhooks"
  | "retryAccountWebhook"
  | "announceEvent"
>;

/** Makes the RPCs. The service's proto file describes their guarantees. */
export function createWebhookRoutes(context: {
  clock: Clock;
  store: WebhookStore;
  jobs: Pick<JobStore, "find">;
}): WebhookMethods {
  const { clock, store, jobs } = context;
  const retry = async (webhookId: string, isTheirs: (webhook: Webhook) => boolean) => {
    const known = await store.find(webhookId);
    if (!known || !isTheirs(known)) refuse(ErrorReason.WEBHOOK_NOT_FOUND);
    const now = clock.now();
    const body = known.jobId === "" ? undefined : messageOf(await jobs.find(known.jobId), now);
    const due = await store.apply(webhookId, { kind: "retry", body, now });
    if (due) return due;
    const message =
      "This webhook can no longer be sent: its job was deleted, and its message was kept for a day.";
    return refuse(ErrorReason.WEBHOOK_NOT_FOUND, { message });
  };
  return {
    async announceEvent({ webhookId, accountId, keyId, type, url, body }) {
      if (!/^evt_[a-z0-9]{24}$/.test(webhookId)) broken("webhook_id");
      if (accountId === "") broken("account_id");
      if (keyId !== "" && !accountOrKeyIdPattern.test(keyId)) broken("key_id");
      const known = webhookTypes.find((one) => one === type) ?? broken("type");
      if (!isOutsideUrl(url)) broken("url");
      const ofKey = keyId === "" ? {} : { keyId };
      const event = { webhookId, accountId, ...ofKey, jobId: "", type: known, url, body };
      await writeDown(newWebhook(event, clock.now()), context);
      return {};
    },
    async listWebhooks({ pageSize, pageToken, allKeys }, call) {
      const { accountId, keyId: own } = principalOf(call);
      const keyId = allKeys ? undefined : own;
      const page = await readPage(store, { accountId, keyId, pageSize, pageToken });
      // The cursor comes from the caller unchanged.
      return page ?? refuse(ErrorReason.INVALID_VALUE, { param: "cursor" });
    },
    async retryWebhook({ webhookId, allKeys }, call) {
      const own = principalOf(call);
      const due = await retry(
        webhookId,
        ({ accountId, keyId }) => accountId === own.accountId && (allKeys || keyId === own.keyId),
      );
      return { webhook: webhookMessage(due) };
    },
    async getWebhookSecret(_, call) {
      return secretFields(await secretsOf(principalOf(call).accountId, context), clock.now());
    },
    async rotateWebhookSecret({ idempotencyKey }, call) {
      const { accountId, keyId } = principalOf(call);
      const key = checkIdempotencyKey(idempotencyKey);
      const operation = key && createHash("sha256").update(`${keyId}\n${key}`).digest("hex");
      const { secrets, replayed } = await rotateSecrets(accountId, operation, context);
      return { ...secretFields(secrets, clock.now()), replayed };
    },
    async listAccountWebhooks({ accountId, pageSize, pageToken }) {
      if (accountId === "") broken("account_id");
      const page = await readPage(store, { accountId, pageSize, pageToken });
      return page ?? broken("page_token");
    },
    async retryAccountWebhook({ webhookId }) {
      const due = await retry(webhookId, () => true);
      return { webhook: webhookMessage(due), accountId: due.accountId };
    },
  };
}

interface PageQuery {
  accountId: string;
  keyId?: string | undefined;
  pageSize: number;
  pageToken: string;
}

/** Undefined where the token is not one of genmesh. */
async function readPage(store: WebhookStore, { pageSize, pageToken, ...whose }: PageQuery) {
  const size = pageSize === 0 ? webhookPage.default : pageSize;
  if (size < 1 || size > webhookPage.most) broken("page_size");
  const after = pageToken === "" ? undefined : parseToken(pageToken);
  if (pageToken !== "" && !after) return undefined;
  const found = await store.list({ ...whose, after, limit: size + 1 });
  const shown = found.slice(0, size);
  const last = shown.at(-1);
  return {
    webhooks: shown.map(webhookMessage),
    nextPageToken: found.length > size && last ? tokenOf(last) : "",
  };
}

/** The place of the page's last webhook in the order. It stays valid even if that webhook is deleted. */
function tokenOf({ createdAt, webhookId }: ListedWebhook): string {
  return Buffer.from(`${createdAt} ${webhookId}`).toString("base64url");
}

function parseToken(token: string): { createdAt: number; webhookId: string } | undefined {
  const text = Buffer.from(token, "base64url").toString();
  const [, createdAt, webhookId] = /^(\d{1,15}) (evt_[a-z0-9]{1,60})$/.exec(text) ?? [];
  return createdAt && webhookId ? { createdAt: Number(createdAt), webhookId } : undefined;
}

const states = {
  pending: Webhook_State.PENDING,
  delivered: Webhook_State.DELIVERED,
  failed: Webhook_State.FAILED,
  stopped: Webhook_State.STOPPED,
} as const satisfies Record<WebhookState, Webhook_State>;

function webhookMessage(webhook: ListedWebhook): WebhookMessage {
  const { lastAttemptAt, dueAt } = webhook;
  return create(WebhookSchema, {
    webhookId: webhook.webhookId,
    keyId: webhook.keyId ?? "",
    type: webhook.type,
    jobId: webhook.jobId,
    url: webhook.url,
    state: states[webhook.state],
    attempts: webhook.attempts,
    lastStatus: webhook.lastStatus ?? 0,
    lastError: webhook.lastError ?? "",
    createTime: timestampFromMs(webhook.createdAt),
    ...(lastAttemptAt === undefined ? {} : { lastAttemptTime: timestampFromMs(lastAttemptAt) }),
    ...(dueAt === undefined ? {} : { nextAttemptTime: timestampFromMs(dueAt) }),
  });
}

function secretFields(secrets: WebhookSecrets, now: number) {
  const previous = previousOf(secrets, now);
  return {
    secret: secrets.current,
    createTime: timestampFromMs(secrets.createdAt),
    ...(previous
      ? {
          previousSecret: previous.secret,
          previousExpireTime: timestampFromMs(previous.until),
        }
      : {}),
  };
}

function broken(field: string): never {
  refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field } });
}
