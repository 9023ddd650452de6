import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { RateBuckets } from "#kit/rate-buckets.ts";
import {
  type AuthService,
  type CreateAccountRequest,
  type CreateKeyRequest,
  type LookUpKeyRequest,
  LookUpKeyResponseSchema,
  WatchKeysResponseSchema,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AuthDeps } from "./context.ts";
import type { AuthEvents } from "./events.ts";
import { type Key, validityOf } from "./key.ts";
import { defaultAccountRequestsPerMinute, idChars } from "./limits.ts";
import { toAccountMessage, toKeyMessage } from "./messages.ts";
import * as read from "./requests.ts";
import { digestOf, makeSecret } from "./secret.ts";
import type { AuthStore } from "./store.ts";
import type { KeyChangeFeed } from "./watch.ts";

/** What the methods work on. */
export interface RoutesContext extends Pick<AuthDeps, "clock" | "ids"> {
  store: AuthStore;
  feed: KeyChangeFeed;
  events: AuthEvents;
  rates: RateBuckets;
}

/** The methods of AuthService. Who may call which is the access interceptor's matter. */
export function createAuthRoutes(context: RoutesContext): ServiceImpl<typeof AuthService> {
  const { clock, ids, store, feed, events } = context;
  return {
    lookUpKey: (req) => lookUpKey(context, req),
    async *watchKeys(req, ctx) {
      for await (const one of feed.watch(read.readRevision(req.sinceRevision), ctx.signal)) {
        yield create(WatchKeysResponseSchema, {
          revision: one.revision,
          changedKeyIds: [...one.keyIds],
        });
      }
    },
    leaseRequests(req) {
      const told = context.rates.takeSome(read.readRatedKey(req), read.readWanted(req.wanted));
      const { granted, limit, remaining, resetMs, retryAfterMs } = told;
      return { granted, limit, remaining, resetMs, retryAfterMs };
    },
    createAccount: (req) => createAccount(context, req),
    async getAccount(req) {
      const account = await store.findAccount(req.accountId);
      return { account: toAccountMessage(account ?? refuse(ErrorReason.ACCOUNT_NOT_FOUND)) };
    },
    async listAccounts(req) {
      const size = read.readPageSize(req.pageSize);
      const after = read.readPageToken(req.pageToken);
      // One more than asked for tells whether there is a next page.
      const found = await store.listAccounts({ limit: size + 1, ...(after ? { after } : {}) });
      const accounts = found.slice(0, size);
      const last = found.length > size ? accounts.at(-1) : undefined;
      return {
        accounts: accounts.map(toAccountMessage),
        nextPageToken: last ? read.pageTokenAfter(last) : "",
      };
    },
    createKey: (req) => createKey(context, req),
    async rotateKey(req) {
      const graceMs = read.readGraceMs(req.graceSeconds);
      const secret = makeSecret(ids);
      const nowMs = clock.now();
      const digest = digestOf(secret);
      const key = await store.rotateKey({ keyId: req.keyId, secret: digest, graceMs, nowMs });
      events.keyChanged("rotated", key);
      return { key: toKeyMessage(key, nowMs), secret };
    },
    async revokeKey(req) {
      const nowMs = clock.now();
      const key = await store.revokeKey({ keyId: req.keyId, nowMs });
      // A repeat answers the first state and is no event.
      if (key.revokedAtMs === nowMs) events.keyChanged("revoked", key);
      return { key: toKeyMessage(key, nowMs) };
    },
    async listKeys(req) {
      const keys = await store.listKeys(req.accountId);
      return { keys: keys.map((key) => toKeyMessage(key, clock.now())) };
    },
  };
}

async function lookUpKey({ store, clock, events }: RoutesContext, req: LookUpKeyRequest) {
  const sha256 = read.readDigest(req.secretSha256);
  const found = await store.findBySecretHash(sha256);
  const nowMs = clock.now();
  const validity = found && validityOf(found.key, sha256, nowMs);
  events.keyLookedUp(validity ? "found" : "invalid");
  if (!found || !validity) refuse(ErrorReason.INVALID_API_KEY);
  return create(LookUpKeyResponseSchema, {
    key: toKeyMessage(found.key, nowMs),
    revision: found.revision,
    accountRequestsPerMinute: found.account.requestsPerMinute,
    ...(validity.untilMs === undefined ? {} : { validUntil: timestampFromMs(validity.untilMs) }),
  });
}

async function createAccount(context: RoutesContext, req: CreateAccountRequest) {
  const { clock, ids, store, events } = context;
  const name = read.readName(req.name);
  const brought = read.readSecret(req.apiKey);
  const operationId = read.readOperationId(req.operationId);
  const secret = brought ?? makeSecret(ids);
  const nowMs = clock.now();
  const accountId = ids.make("acct", idChars);
  const made = await store.createAccount({
    account: {
      accountId,
      name,
      createdAtMs: nowMs,
      requestsPerMinute: defaultAccountRequestsPerMinute,
    },
    key: newKey(context, accountId, secret),
    secretBrought: brought !== undefined,
    ...(operationId === undefined ? {} : { operationId }),
  });
  if (!made.replayed) {
    events.accountCreated(made.account);
    events.keyChanged("created", made.key);
  }
  return {
    account: toAccountMessage(made.account),
    key: toKeyMessage(made.key, nowMs),
    // A repeat that brought no secret drew a new one above, which is nobody's.
    secret: made.replayed ? (brought ?? "") : secret,
    replayed: made.replayed,
  };
}

async function createKey(context: RoutesContext, req: CreateKeyRequest) {
  const { clock, ids, store, events } = context;
  const nowMs = clock.now();
  const expiresAtMs = read.readExpiry(req.expireTime, nowMs);
  const monthlyUsdMicrosLimit = read.readMonthlyLimit(req.monthlyUsdMicrosLimit);
  const secret = makeSecret(ids);
  const key = await store.createKey({
    ...newKey(context, req.accountId, secret),
    scopes: read.readScopes(req.scopes),
    allowedModels: read.readAllowedModels(req.allowedModels),
    requestsPerMinute: read.readKeyRate(req.requestsPerMinute),
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(monthlyUsdMicrosLimit === undefined ? {} : { monthlyUsdMicrosLimit }),
  });
  events.keyChanged("created", key);
  return { key: toKeyMessage(key, nowMs), secret };
}

/** A key that may do everything, at the default rate. */
function newKey({ clock, ids }: RoutesContext, accountId: string, secret: string): Key {
  return {
    keyId: ids.make("key", idChars),
    accountId,
    secret: digestOf(secret),
    scopes: [],
    allowedModels: [],
    createdAtMs: clock.now(),
    requestsPerMinute: read.readKeyRate(0),
  };
}
