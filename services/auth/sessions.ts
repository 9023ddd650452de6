// Answers the methods that begin, look up and end sessions of the console: with a key's secret, by an identity provider, or as
// operator with the admin token. `operator-sessions.ts` signs in by name.

import { createHash, timingSafeEqual } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { effectiveScopes, impliedScopes, scopeNames } from "#common/words/scopes.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { Ids } from "#kit/base/ids.ts";
import type { Clock } from "#kit/time/clock.ts";
import {
  type AuthService,
  type ConsoleSession,
  ConsoleSessionSchema,
  type CreateSessionRequest,
  type LookUpSessionRequest,
  LookUpSessionResponseSchema,
} from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { AuthEvents } from "./events.ts";
import { digestOf, type Key, type KeyOperation, makeSecret, validityOf } from "./key.ts";
import { defaultKeyRequestsPerMinute, idChars, maxSessionsPerKey } from "./limits.ts";
import { toAdmittedFields, toKeyMessage } from "./messages.ts";
import { isActive } from "./operator.ts";
import type { OperatorStore } from "./operator-store.ts";
import * as read from "./requests.ts";
import {
  idleEndOf,
  isOver,
  isSeenLate,
  newSession,
  type Session,
  type SessionIdentity,
} from "./session.ts";
import type { SessionStore } from "./session-store.ts";
import type { SignInLimits } from "./sign-in-limits.ts";
import type { SignInLog } from "./sign-in-log.ts";
import type { AuthStore, StoredKey } from "./store.ts";

/** The dependencies of the methods. */
export interface SessionsContext {
  clock: Clock;
  ids: Ids;
  store: AuthStore;
  sessions: SessionStore;
  operators: OperatorStore;
  signIns: SignInLimits;
  signInLog: SignInLog;
  events: AuthEvents;
}

/** The methods of the console's sessions. */
type SessionMethods = Pick<
  ServiceImpl<typeof AuthService>,
  | "createSession"
  | "createIdentitySession"
  | "createOperatorSession"
  | "lookUpSession"
  | "confirmSession"
  | "endSession"
>;

/** Makes the methods. Each look-up reads the present key. So the deletion of a key ends its sessions with the next request. */
export function createSessionRoutes(context: SessionsContext): SessionMethods {
  const { clock, sessions, signIns, signInLog, events } = context;
  return {
    createSession: (request) => createSession(context, request),
    async createIdentitySession(request) {
      const sha256 = read.readDigest(request.sessionSha256);
      const identity = read.readIdentity(request.identity);
      const key = await keyOfIdentity(context, identity, request);
      const secretSha256 = key.secret.sha256;
      const session = await begin(context, { sha256, keyId: key.keyId, secretSha256, identity });
      return { session, key: toKeyMessage(key, clock.now()) };
    },
    async createOperatorSession(request) {
      const sha256 = read.readDigest(request.sessionSha256);
      const secretSha256 = read.readDigest(request.secretSha256);
      const identity = request.identity && read.readIdentity(request.identity);
      // The secret was correct. A client that has failed too often waits nevertheless, and learns nothing.
      if (!identity) await signIns.attempt(read.readClient(request.client), async () => true);
      const begun = { sha256, secretSha256, ...(identity ? { identity } : {}) };
      const session = await signInLog.written("console.sign_in", begun, () =>
        begin(context, begun),
      );
      return { session };
    },
    lookUpSession: (request) => lookUpSession(context, request),
    async confirmSession(request) {
      const sha256 = read.readDigest(request.sessionSha256);
      const secretSha256 = read.readDigest(request.secretSha256);
      let found: Session | undefined;
      const session = await signIns.attempt(read.readClient(request.client), async () => {
        found = await sessions.find(sha256);
        // An operator who signed in by name gives password and code again, by another method.
        const isRight = found && !found.operator && isSame(found.secretSha256, secretSha256);
        return isRight ? found : undefined;
      });
      if (!session) {
        events.signInFailed();
        if (found && isOperators(found)) await signInLog.failed(request.client);
      }
      return { confirmed: session !== undefined };
    },
    async endSession(request) {
      const sha256 = read.readDigest(request.sessionSha256);
      const session = await sessions.find(sha256);
      if (!session) return {};
      const end = () => sessions.end(sha256);
      await (isOperators(session) ? signInLog.written("console.sign_out", session, end) : end());
      events.sessionEnded(session);
      return {};
    },
  };
}

async function createSession(context: SessionsContext, request: CreateSessionRequest) {
  const { clock, store, signIns, signInLog, events } = context;
  const sha256 = read.readDigest(request.sessionSha256);
  const secretSha256 = read.readDigest(request.secretSha256);
  const key = await signIns.attempt(read.readClient(request.client), async () => {
    const found = await store.findBySecretHash(secretSha256);
    // A former secret opens no session. Its grace is for programs that still use it.
    if (!found || found.account.closingAtMs !== undefined) return undefined;
    return isCurrent(found.key, secretSha256, clock.now()) ? found.key : undefined;
  });
  if (!key) {
    events.signInFailed();
    if (request.amongOperators) await signInLog.failed(request.client);
    refuse(ErrorReason.INVALID_API_KEY);
  }
  const session = await begin(context, { sha256, keyId: key.keyId, secretSha256 });
  return { session, key: toKeyMessage(key, clock.now()) };
}

async function lookUpSession(context: SessionsContext, request: LookUpSessionRequest) {
  const { clock, sessions } = context;
  const nowMs = clock.now();
  const sha256 = read.readDigest(request.sessionSha256);
  const session = await sessions.find(sha256);
  if (!session) refuse(ErrorReason.INVALID_API_KEY);
  const found = await holderOf(context, session, request.adminSha256);
  if (found === "unknown") refuse(ErrorReason.INVALID_API_KEY);
  if (found === "over" || isOver(session, nowMs)) {
    await sessions.end(sha256);
    refuse(ErrorReason.INVALID_API_KEY);
  }
  const seen = isSeenLate(session, nowMs) ? { ...session, seenAtMs: nowMs } : session;
  if (seen !== session) await sessions.touch(sha256, nowMs);
  return create(LookUpSessionResponseSchema, {
    session: toSessionMessage(seen),
    ...(found === "operator" ? {} : toAdmittedFields(found, clock.now())),
  });
}

/** Stores a new session. */
export async function begin(
  { clock, sessions, events }: SessionsContext,
  begun: Parameters<typeof newSession>[0],
): Promise<ConsoleSession> {
  const session = newSession(begun, clock.now());
  await sessions.create(session, maxSessionsPerKey);
  events.sessionBegan(session);
  return toSessionMessage(session);
}

function isOperators({ keyId }: Session): boolean {
  return keyId === undefined;
}

/** The holder of a session. "over" is final. "unknown" means that this gateway may not serve the session. */
async function holderOf(context: SessionsContext, session: Session, admin: Uint8Array) {
  const { store, operators, clock } = context;
  if (session.keyId === undefined) {
    if (!isSame(session.secretSha256, admin)) return "unknown";
    if (!session.operator) return "operator";
    const { name, epoch } = session.operator;
    const operator = await operators.find(name);
    return operator && isActive(operator) && operator.epoch === epoch ? "operator" : "over";
  }
  const found = await store.findBySecretHash(session.secretSha256);
  if (found?.key.keyId !== session.keyId || found.account.closingAtMs !== undefined) return "over";
  return isCurrent(found.key, session.secretSha256, clock.now()) ? found : "over";
}

/** Is this the key's present secret, and is it valid? */
function isCurrent(key: Key, sha256: Uint8Array, nowMs: number): boolean {
  return isSame(key.secret.sha256, sha256) && validityOf(key, sha256, nowMs) !== undefined;
}

function isSame(kept: Uint8Array, sent: Uint8Array): boolean {
  return kept.length === sent.length && timingSafeEqual(kept, sent);
}

/** The scopes of an owner's key, without those that are implied. */
const ownerScopes: readonly Scope[] = Object.values(scopeNames).filter(
  (scope) => !impliedScopes.has(scope),
);

/**
 * A person's key in an account, made at the first sign-in. Its secret is never shown. Its owner's scopes follow the provider's claim, and
 * other changes by the account's owners stay. Refuses with INVALID_API_KEY where they have deleted or disabled the key.
 */
async function keyOfIdentity(
  { store, clock, ids, events }: SessionsContext,
  identity: SessionIdentity,
  { accountId, owner }: { accountId: string; owner: boolean },
): Promise<StoredKey> {
  const operation = operationOf(identity, accountId);
  const nowMs = clock.now();
  const account = await store.findAccount(accountId);
  if (!account || account.closingAtMs !== undefined) refuse(ErrorReason.INVALID_API_KEY);
  let key = await store.findKeyMadeBy(operation.slot);
  if (!key) {
    const made: Key = {
      keyId: ids.make("key", idChars),
      accountId,
      secret: digestOf(makeSecret(ids)),
      scopes: scopesFor(impliedScopes, owner),
      allowedModels: [],
      createdAtMs: nowMs,
      requestsPerMinute: defaultKeyRequestsPerMinute,
      name: `Console: ${identity.subject}`.slice(0, maxKeyNameChars),
      madeBy: operation,
    };
    key = await store.createKey(made);
    if (key.keyId === made.keyId) events.keyChanged("created", key);
  }
  if (!isCurrent(key, key.secret.sha256, nowMs)) refuse(ErrorReason.INVALID_API_KEY);
  const changed = await store.changeKey(key.keyId, (one) => {
    const scopes = scopesFor(effectiveScopes(one.scopes), owner);
    const isSameSet =
      scopes.length === one.scopes.length && scopes.every((scope) => one.scopes.includes(scope));
    return isSameSet ? one : { ...one, scopes, updatedAtMs: nowMs };
  });
  if (changed.updatedAtMs === nowMs) events.keyChanged("updated", changed);
  return changed;
}

/** Characters of the name of a person's key. */
const maxKeyNameChars = 200;

function scopesFor(before: ReadonlySet<Scope>, owner: boolean): Scope[] {
  const own = [...before].filter((scope) => !ownerScopes.includes(scope));
  return owner ? [...own, ...ownerScopes] : own;
}

/** A person's key is made by this operation, once in an account. */
function operationOf({ issuer, subject }: SessionIdentity, accountId: string): KeyOperation {
  const person = JSON.stringify(["console identity", issuer, subject, accountId]);
  const slot = createHash("sha256").update(person).digest("hex");
  return { slot, body: "" };
}

function toSessionMessage(session: Session): ConsoleSession {
  const { identity, operator, confirmedAtMs } = session;
  return create(ConsoleSessionSchema, {
    operator: session.keyId === undefined,
    createTime: timestampFromMs(session.createdAtMs),
    endTime: timestampFromMs(session.endsAtMs),
    idleEndTime: timestampFromMs(idleEndOf(session)),
    ...(identity ? { identity } : {}),
    ...(operator ? { operatorName: operator.name } : {}),
    ...(confirmedAtMs === undefined ? {} : { confirmTime: timestampFromMs(confirmedAtMs) }),
  });
}
