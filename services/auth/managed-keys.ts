// Answers the methods by which a caller's key lists, makes, changes, rotates and deletes keys of its own account. Operators'
// methods for keys are in `routes.ts`.

import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { checkIdempotencyKey, refuseAtEdge } from "#common/words/idempotency.ts";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { ErrorReason, isRefusal, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import { fingerprintOf, type JsonObject, parseSettings } from "#kit/base/json.ts";
import { type Principal, principalOf } from "#kit/rpc/principal.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type AuthService,
  type CreateManagedKeyRequest,
  CreateManagedKeyResponseSchema,
  type RotateManagedKeyRequest,
  RotateManagedKeyResponseSchema,
  type UpdateManagedKeyRequest,
  UpdateManagedKeyResponseSchema,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { AuthEvents } from "./events.ts";
import { digestOf, isSameOperation, type Key, type KeyOperation, makeSecret } from "./key.ts";
import {
  type AskedKey,
  askedRights,
  keyWith,
  readKeyChange,
  readNewKey,
  readRotation,
} from "./key-body.ts";
import {
  allRights,
  inherited,
  type KeyRights,
  refuseBeyond,
  refuseEnded,
  refuseNoManager,
} from "./key-rights.ts";
import { idChars } from "./limits.ts";
import { toBoundKeyMessage, toKeyMessage } from "./messages.ts";
import { readOffset, readPageSize } from "./requests.ts";
import type { AuthStore, StoredKey } from "./store.ts";

/** The dependencies of the methods. */
interface ManagedKeysContext {
  clock: Clock;
  ids: Ids;
  store: AuthStore;
  events: AuthEvents;
}

/** The methods by which a key manages the keys of its account. */
type ManagedKeys = Pick<
  ServiceImpl<typeof AuthService>,
  | "getOwnKey"
  | "listOwnKeys"
  | "getManagedKey"
  | "createManagedKey"
  | "updateManagedKey"
  | "rotateManagedKey"
  | "deleteManagedKey"
>;

/**
 * Key management by a key, which must have the scope `keys`. The key's rights are read from the store at each call, because a gateway's
 * copy may be a second old.
 */
export function createManagedKeyRoutes(context: ManagedKeysContext): ManagedKeys {
  const { clock, store, events } = context;
  const message = (key: StoredKey) => toKeyMessage(key, clock.now());
  const manager = async (call: HandlerContext): Promise<Key> => {
    const key = await actingKey(context, principalOf(call));
    refuseNoManager(key);
    return key;
  };
  /** A key of the manager's account. */
  const managed = async (acting: Key, keyId: string): Promise<StoredKey> => {
    const key = await store.findKey(keyId);
    if (key) refuseOthers(key, acting);
    return key ?? refuse(ErrorReason.KEY_NOT_FOUND);
  };
  return {
    async getOwnKey(_request, call) {
      const key =
        (await store.findKey(principalOf(call).keyId)) ?? refuse(ErrorReason.KEY_NOT_FOUND);
      const account =
        (await store.findAccount(key.accountId)) ?? refuse(ErrorReason.ACCOUNT_NOT_FOUND);
      return { key: toBoundKeyMessage({ key, account }, clock.now()) };
    },
    async listOwnKeys(request, call) {
      const { accountId } = await manager(call);
      const size = readPageSize(request.pageSize);
      const offset = readOffset(request.offset);
      const keys = (await store.listKeys(accountId))
        .filter((key) => key.revokedAtMs === undefined)
        .filter((key) => request.includeDisabled || !key.disabled)
        .reverse();
      return { keys: keys.slice(offset, offset + size).map(message) };
    },
    async getManagedKey(request, call) {
      return { key: message(await managed(await manager(call), request.keyId)) };
    },
    createManagedKey: (request, call) => createManagedKey(context, request, principalOf(call)),
    async updateManagedKey(request, call) {
      return updateManagedKey(context, request, await manager(call));
    },
    rotateManagedKey: (request, call) => rotateManagedKey(context, request, principalOf(call)),
    async deleteManagedKey({ keyId }, call) {
      await managed(await manager(call), keyId);
      const nowMs = clock.now();
      const key = await store.revokeKey({ keyId, nowMs });
      if (key.revokedAtMs === nowMs) events.keyChanged("revoked", key);
      return {};
    },
  };
}

/** The principal's key from the store. Refuses a key that has ended since the gateway admitted it with INVALID_API_KEY. */
async function actingKey(
  { store, clock }: ManagedKeysContext,
  { accountId, keyId }: Principal,
): Promise<Key> {
  const key = refuseEnded(await store.findKey(keyId), clock.now());
  return key.accountId === accountId ? key : refuse(ErrorReason.INVALID_API_KEY);
}

/** A deleted key, and one of another account, is refused like a key that never existed. */
function refuseOthers(key: Key, acting: Key): void {
  const isHere = key.accountId === acting.accountId && key.revokedAtMs === undefined;
  if (!isHere) refuse(ErrorReason.KEY_NOT_FOUND);
}

async function createManagedKey(
  context: ManagedKeysContext,
  request: CreateManagedKeyRequest,
  principal: Principal,
) {
  const { store, clock, ids, events } = context;
  const body = parseSettings(request.body);
  const operation = operationOf(principal, "/keys", request.idempotencyKey, body);
  const made = operation && (await store.findKeyMadeBy(operation.slot));
  if (made && operation && isSameOperation(made.madeBy, operation)) return shown(made);
  refuseAtEdge(request.admission);
  const acting = await actingKey(context, principal);
  refuseNoManager(acting);
  const nowMs = clock.now();
  const asked = readNewKey(body, nowMs);
  const secret = makeSecret(ids);
  const before = {
    keyId: ids.make("key", idChars),
    accountId: acting.accountId,
    secret: digestOf(secret),
    createdAtMs: nowMs,
    ...inherited(acting),
    ...(operation ? { madeBy: operation } : {}),
  };
  const key = keyWith(asked, before);
  if (key.scopes.length === 0) {
    refuse(ErrorReason.PERMISSION_DENIED, {
      param: "scopes",
      message:
        "Name the new key's 'scopes': the API key of this request has only scopes that a new key does not get unasked.",
    });
  }
  refuseBeyond(acting, key);
  const stored = await store.createKey(key).catch(refuseFull);
  if (stored.keyId !== key.keyId) return shown(stored);
  events.keyChanged("created", stored);
  return create(CreateManagedKeyResponseSchema, {
    key: toKeyMessage(stored, nowMs),
    secret,
    ignoredParameters: asked.ignored,
  });

  /** A repeat's answer has no secret, because a secret is shown once. */
  function shown(key: StoredKey) {
    if (key.revokedAtMs !== undefined) refuse(ErrorReason.KEY_NOT_FOUND);
    return create(CreateManagedKeyResponseSchema, {
      key: toKeyMessage(key, clock.now()),
      replayed: true,
    });
  }
}

function refuseFull(error: unknown): never {
  if (!isRefusal(error, ErrorReason.OPERATION_CONFLICT)) throw error;
  refuse(ErrorReason.PERMISSION_DENIED, {
    message: `The account has ${maxKeysPerAccount} keys, as many as an account may have; deleted ones count. Change or rotate one of them instead.`,
  });
}

async function updateManagedKey(
  { store, clock, events }: ManagedKeysContext,
  request: UpdateManagedKeyRequest,
  acting: Key,
) {
  const body = parseSettings(request.body);
  const nowMs = clock.now();
  let asked: AskedKey = { ignored: [] };
  const stored = await store.changeKey(request.keyId, (key) => {
    refuseOthers(key, acting);
    asked = readKeyChange(body, nowMs);
    refuseChange(key, asked, acting);
    return changed(key, asked, nowMs);
  });
  if (stored.updatedAtMs === nowMs) events.keyChanged("updated", stored);
  return create(UpdateManagedKeyResponseSchema, {
    key: toKeyMessage(stored, nowMs),
    ignoredParameters: asked.ignored,
    ...lowBalanceField(asked),
  });
}

/** The part of a change that billing keeps. */
export function lowBalanceField({ lowBalanceUsdMicros: usdMicros }: AskedKey) {
  if (usdMicros === undefined) return {};
  return { lowBalance: usdMicros === null ? {} : { usdMicros } };
}

const limitRights: readonly (keyof KeyRights)[] = ["monthlyUsdMicrosLimit", "limitReset"];

/** Refuses with PERMISSION_DENIED a change that gives a right that the acting key lacks. */
function refuseChange(key: Key, asked: AskedKey, acting: Key): void {
  const next = askedRights(asked, key);
  // An amount means nothing without its period.
  const isLimit = limitRights.some((part) => Object.hasOwn(asked, part));
  refuseBeyond(
    acting,
    next,
    allRights.filter(
      (part) => Object.hasOwn(asked, part) || (isLimit && limitRights.includes(part)),
    ),
  );
  // Enabling a key gives all its rights back.
  if (key.disabled && asked.disabled === false) refuseBeyond(acting, next);
  // A receiver learns of all jobs that the key makes.
  if (asked.webhookUrl != null) refuseBeyond(acting, next);
}

/** The key after a change, or the same object where the body changes nothing. */
export function changed(key: Key, asked: AskedKey, nowMs: number): Key {
  if (Object.keys(asked).length === 1) return key;
  return { ...keyWith(asked, key), updatedAtMs: nowMs };
}

async function rotateManagedKey(
  context: ManagedKeysContext,
  request: RotateManagedKeyRequest,
  principal: Principal,
) {
  const { store, clock, ids, events } = context;
  const { keyId } = request;
  const body = request.body.length === 0 ? {} : parseSettings(request.body);
  const route = `/keys/${keyId}/rotate`;
  const operation = operationOf(principal, route, request.idempotencyKey, body);
  const acting = await actingKey(context, principal);
  const before = operation && (await store.findKey(keyId));
  const isKnown = before?.rotations?.some(({ slot }) => slot === operation?.slot) ?? false;
  if (!isKnown) {
    refuseAtEdge(request.admission);
    refuseNoManager(acting);
  }
  const graceMs = readRotation(body);
  const secret = makeSecret(ids);
  const digest = digestOf(secret);
  const nowMs = clock.now();
  const key = await store.rotateKey({
    keyId,
    secret: digest,
    graceMs,
    nowMs,
    allow(target) {
      refuseOthers(target, acting);
      // The acting key's holder sees the new secret, and so gets all rights of that key.
      refuseBeyond(acting, target);
    },
    ...(operation ? { operation } : {}),
  });
  if (key.revokedAtMs !== undefined) refuse(ErrorReason.KEY_NOT_FOUND);
  const replayed = Buffer.compare(key.secret.sha256, digest.sha256) !== 0;
  if (!replayed) events.keyChanged("rotated", key);
  return create(RotateManagedKeyResponseSchema, {
    key: toKeyMessage(key, nowMs),
    secret: replayed ? "" : secret,
    replayed,
  });
}

/** A call with an idempotency key, identified by acting key, route and body. */
function operationOf(
  { keyId }: Principal,
  route: string,
  idempotencyKey: string | undefined,
  body: JsonObject,
): KeyOperation | undefined {
  const checked = checkIdempotencyKey(idempotencyKey);
  if (checked === undefined) return undefined;
  const slot = createHash("sha256").update(`${keyId}\n${route}\n${checked}`).digest("hex");
  return { slot, body: fingerprintOf(body) };
}
