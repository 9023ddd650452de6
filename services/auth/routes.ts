// Joins all methods of AuthService, and answers those for accounts, for look-ups by gateways, and for keys that operators change.
// The other methods are in files of their own.

import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { JsonObject } from "#kit/base/json.ts";
import { parseSettings } from "#kit/base/settings-body.ts";
import type { RateBuckets } from "#kit/share/rate-buckets.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type AuthService,
  type CreateAccountRequest,
  type ListAccountsRequest,
  type ListAllKeysRequest,
  type LookUpKeyRequest,
  LookUpKeyResponseSchema,
  WatchKeysResponseSchema,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { nameKeyOf, refuseClosing } from "./account.ts";
import { accountWith, monthlyGrantField, readAccountChange } from "./account-body.ts";
import { createClosingRoutes } from "./account-closing.ts";
import type { ActionStore } from "./action.ts";
import { createActionRoutes } from "./actions.ts";
import type { AuthEvents } from "./events.ts";
import { digestOf, type Key, makeSecret, validityOf } from "./key.ts";
import { keyWith, readKeyChange, readOperatorsKey } from "./key-body.ts";
import { defaultAccountRequestsPerMinute, defaultKeyRequestsPerMinute, idChars } from "./limits.ts";
import { changed, createManagedKeyRoutes, lowBalanceField } from "./managed-keys.ts";
import {
  toAccountMessage,
  toAdmittedFields,
  toKeyMessage,
  toWholeAccountMessage,
} from "./messages.ts";
import { createNamedSessionRoutes } from "./operator-sessions.ts";
import { createSetUpRoutes } from "./operator-set-up.ts";
import type { OperatorStore } from "./operator-store.ts";
import { createOperatorRoutes } from "./operators.ts";
import type { Passwords } from "./passwords.ts";
import * as read from "./requests.ts";
import type { SessionStore } from "./session-store.ts";
import { createSessionRoutes } from "./sessions.ts";
import type { SignInLimits } from "./sign-in-limits.ts";
import type { SignInLog } from "./sign-in-log.ts";
import type { AuthStore } from "./store.ts";
import type { KeyChangeFeed } from "./watch.ts";

/** The dependencies of the methods. */
interface RoutesContext {
  clock: Clock;
  ids: Ids;
  store: AuthStore;
  feed: KeyChangeFeed;
  events: AuthEvents;
  rates: RateBuckets;
  sessions: SessionStore;
  operators: OperatorStore;
  passwords: Passwords;
  signIns: SignInLimits;
  signInLog: SignInLog;
  actions: ActionStore;
}

/** The methods of AuthService. The access interceptor decides which caller may call which method. */
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
      return { account: toWholeAccountMessage(account ?? refuse(ErrorReason.ACCOUNT_NOT_FOUND)) };
    },
    listAccounts: (req) => listAccounts(context, req),
    async setAccountState({ accountId, suspended }) {
      const nowMs = clock.now();
      const account = await store.setAccountState({ accountId, suspended, nowMs });
      events.accountStateSet(account);
      return { account: toWholeAccountMessage(account) };
    },
    async updateAccount({ accountId, body }) {
      const asked = readAccountChange(parseSettings(body));
      const account = await store.changeAccount(accountId, (before) => {
        refuseClosing(before);
        return accountWith(asked, before);
      });
      events.accountChanged(account);
      return { account: toWholeAccountMessage(account), ...monthlyGrantField(asked) };
    },
    async noteKeyUses(req) {
      await store.noteUses(read.readUses(req.uses));
      return {};
    },
    async updateKey({ keyId, body }) {
      const nowMs = clock.now();
      const asked = readKeyChange(parseSettings(body), nowMs);
      const key = await store.changeKey(keyId, (before) => {
        refuseRevoked(before);
        return changed(before, asked, nowMs);
      });
      if (key.updatedAtMs === nowMs) events.keyChanged("updated", key);
      return { key: toKeyMessage(key, nowMs), ...lowBalanceField(asked) };
    },
    async getKeyWebhook({ keyId }) {
      const key = await store.findKey(keyId);
      return { webhookUrl: (key?.revokedAtMs === undefined && key?.webhookUrl) || "" };
    },
    ...createManagedKeyRoutes(context),
    ...createSessionRoutes(context),
    ...createNamedSessionRoutes(context),
    ...createOperatorRoutes(context),
    ...createSetUpRoutes(context),
    ...createClosingRoutes(context),
    ...createActionRoutes(context),
    listAllKeys: (req) => listAllKeys(context, req),
    addKey: (req) => addKey(context, req.accountId, parseSettings(req.body)),
    createKey: (req) => addKey(context, req.accountId, read.asKeyBody(req)),
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
      // A repeat answers the first state and causes no event.
      if (key.revokedAtMs === nowMs) events.keyChanged("revoked", key);
      return { key: toKeyMessage(key, nowMs) };
    },
    async listKeys(req) {
      const keys = await store.listKeys(req.accountId);
      return { keys: keys.map((key) => toKeyMessage(key, clock.now())) };
    },
  };
}

async function listAccounts(context: RoutesContext, req: ListAccountsRequest) {
  const { store } = context;
  if (req.accountIds.length > 0) {
    const named = await store.findAccounts(read.readAccountIds(req.accountIds));
    return { accounts: named.map(toAccountMessage) };
  }
  if (req.query !== "") return searchAccounts(context, req);
  const size = read.readPageSize(req.pageSize);
  const after = read.readPageToken(req.pageToken);
  // One account more than the page shows whether there is a next page.
  const found = await store.listAccounts({ limit: size + 1, ...(after ? { after } : {}) });
  const accounts = found.slice(0, size);
  const last = found.length > size ? accounts.at(-1) : undefined;
  return {
    accounts: accounts.map(toAccountMessage),
    nextPageToken: last ? read.pageTokenAfter(last) : "",
  };
}

async function listAllKeys(
  { clock, store }: RoutesContext,
  { pageSize, pageToken, query }: ListAllKeysRequest,
) {
  const size = read.readPageSize(pageSize);
  const after = read.readKeyToken(pageToken);
  const prefix = read.readQuery(query);
  const found = await store.listAllKeys({
    limit: size + 1,
    ...(prefix === "" ? {} : { prefix }),
    ...(after ? { after } : {}),
  });
  const keys = found.slice(0, size);
  const last = found.length > size ? keys.at(-1) : undefined;
  const next = last && { createdAtMs: last.createdAtMs, accountId: last.keyId };
  return {
    keys: keys.map((key) => toKeyMessage(key, clock.now())),
    nextPageToken: next ? read.pageTokenAfter(next) : "",
  };
}

async function lookUpKey({ store, clock, events }: RoutesContext, req: LookUpKeyRequest) {
  const sha256 = read.readDigest(req.secretSha256);
  const found = await store.findBySecretHash(sha256);
  const nowMs = clock.now();
  const validity = found && validityOf(found.key, sha256, nowMs);
  events.keyLookedUp(validity ? "found" : "invalid");
  // No key of an account that is being closed is valid. Some of them may not be deleted yet.
  if (!found || !validity || found.account.closingAtMs !== undefined) {
    refuse(ErrorReason.INVALID_API_KEY);
  }
  return create(LookUpKeyResponseSchema, {
    ...toAdmittedFields(found, nowMs),
    revision: found.revision,
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
    key: { ...newKey(context, accountId, secret), scopes: read.readScopes(req.scopes) },
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
    // A repeat without a secret made a new one above, which belongs to no key.
    secret: made.replayed ? (brought ?? "") : secret,
    replayed: made.replayed,
  };
}

/** Finds accounts by their ids or names. */
async function searchAccounts({ store }: RoutesContext, req: ListAccountsRequest) {
  const size = read.readPageSize(req.pageSize);
  const query = read.readQuery(req.query);
  const after = read.readSearchToken(req.pageToken);
  const by = query.startsWith("acct_") ? "id" : "name";
  const prefix = by === "id" ? query : nameKeyOf(query);
  const search = { by, prefix, limit: size + 1, ...(after ? { after } : {}) } as const;
  const found = await store.searchAccounts(search);
  const accounts = found.slice(0, size);
  const last = found.length > size ? accounts.at(-1) : undefined;
  const next = last && { accountId: last.accountId, nameKey: nameKeyOf(last.name) };
  return {
    accounts: accounts.map(toAccountMessage),
    nextPageToken: next ? read.searchTokenAfter(next) : "",
  };
}

async function addKey(context: RoutesContext, accountId: string, body: JsonObject) {
  const { clock, ids, store, events } = context;
  const account = await store.findAccount(accountId);
  if (account) refuseClosing(account);
  const nowMs = clock.now();
  const asked = readOperatorsKey(body, nowMs);
  const secret = makeSecret(ids);
  const key = await store.createKey(keyWith(asked, newKey(context, accountId, secret)));
  events.keyChanged("created", key);
  return { key: toKeyMessage(key, nowMs), secret };
}

function refuseRevoked(key: Key): void {
  if (key.revokedAtMs === undefined) return;
  refuse(ErrorReason.OPERATION_CONFLICT, { message: "A revoked key cannot be changed." });
}

/** A key with all rights and the default rate. */
function newKey({ clock, ids }: RoutesContext, accountId: string, secret: string): Key {
  return {
    keyId: ids.make("key", idChars),
    accountId,
    secret: digestOf(secret),
    scopes: [],
    allowedModels: [],
    createdAtMs: clock.now(),
    requestsPerMinute: defaultKeyRequestsPerMinute,
  };
}
