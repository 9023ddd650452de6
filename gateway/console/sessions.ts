// Begins, finds and ends sessions by asking auth, which stores them, and asks for the secret again before risky acts.

import { hash, randomBytes, timingSafeEqual } from "node:crypto";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { CallOptions } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { effectiveScopes, scopeName } from "#common/words/scopes.ts";
import { ErrorReason, RefusalError, refuse, unavailable } from "#kit/base/errors.ts";
import { networkOf } from "#kit/edge/connection-bounds.ts";
import { digest } from "#kit/rpc/access.ts";
import { affinityHeader } from "#kit/rpc/affinity.ts";
import { requestIdHeader } from "#kit/rpc/principal.ts";
import type { ApiKey, ConsoleSession as Message } from "#proto/genmesh/auth/v1/auth_service_pb.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type AdmittedKey, toAdmittedKey } from "../admission/key-cache.ts";
import type { Edge } from "../context.ts";
import { deadlinesMs } from "../limits.ts";
import { isRepeated } from "../request.ts";
import { passwordTimeoutMs } from "./admin/limits.ts";
import { sessionCookie } from "./cookies.ts";
import { confirmedMs, lookUpTimeoutMs, maxSessionLookUps, sessionIdBytes } from "./limits.ts";
import type { ConsoleSession } from "./session.ts";

/** A person that an identity provider confirms. */
export interface PersonIdentity {
  issuer: string;
  subject: string;
  /** Did the provider ask for the password, or the like, just now? */
  confirmed: boolean;
}

/** The rights that a sign-in by an identity provider gives. */
export type IdentityRights = { role: "member" | "owner"; accountId: string } | { role: "operator" };

/** Name, password and code of an operator. */
export interface NamedProof {
  name: string;
  password: string;
  /** Six digits of the authenticator, or a recovery code. */
  code: string;
}

/** The console's sessions. Auth stores them, so any gateway serves any of them. */
export interface Sessions {
  /**
   * The session of the request's cookie, and the key that it uses (an operator's has none). Refuses with INVALID_API_KEY where there is
   * none. Nothing is cached here, so an ended session is refused from the next request on.
   */
  find(request: FastifyRequest): Promise<{ session: ConsoleSession; key?: AdmittedKey }>;
  /** Signs in with a secret, and sets the cookie. Refuses with INVALID_API_KEY, and RATE_LIMIT_EXCEEDED after many failures. */
  signIn(request: FastifyRequest, reply: FastifyReply, secret: string): Promise<ConsoleSession>;
  /** Signs in an operator by name, and sets the cookie. Refuses as `signIn` does, with one message for every cause. */
  signInByName(
    request: FastifyRequest,
    reply: FastifyReply,
    proof: NamedProof,
  ): Promise<ConsoleSession>;
  /** Signs in a person, and sets the cookie. Refuses with INVALID_API_KEY. */
  signInPerson(
    request: FastifyRequest,
    reply: FastifyReply,
    identity: PersonIdentity,
    rights: IdentityRights,
  ): Promise<void>;
  /** Ends the session of the cookie, where there is one, and clears the cookie. */
  signOut(request: FastifyRequest, reply: FastifyReply): Promise<void>;
  /** Refuses with SECRET_REQUIRED where the request lacks the session's secret in `x-console-secret`. */
  confirmSecret(request: FastifyRequest): Promise<void>;
}

/** Header with the secret that the console asks for again. */
const secretHeader = "x-console-secret";
/** One replica of auth counts all failed sign-ins. */
const oneReplica = { [affinityHeader]: "console-sign-in" };
const sessionIdPattern = /^[A-Za-z0-9_-]{43}$/;

/** Makes the sessions. */
export function createSessions(edge: Edge): Sessions {
  const { auth } = edge.peers;
  const operatorToken = edge.settings.console?.operatorToken;
  const adminSha256 = operatorToken === undefined ? new Uint8Array() : digest(operatorToken);
  const adminHeaders = { authorization: `Bearer ${operatorToken}` };
  const lookUp = boundedLookUp(edge, adminSha256);

  const callOf = ({ id }: FastifyRequest) => ({
    headers: { [requestIdHeader]: id, ...oneReplica },
    timeoutMs: deadlinesMs.quick,
  });
  /** Begins a session under a new id, and ends the browser's old one. An id from before a sign-in opens nothing after it. */
  const begin = async <T>(
    request: FastifyRequest,
    reply: FastifyReply,
    open: (sessionSha256: Uint8Array) => Promise<T>,
  ): Promise<T> => {
    const former = idOf(request);
    const id = randomBytes(sessionIdBytes).toString("base64url");
    const opened = await open(digest(id));
    if (former !== undefined) {
      await auth.endSession({ sessionSha256: digest(former) }, callOf(request));
    }
    sessionCookie.set(request, reply, id);
    return opened;
  };
  return {
    async find(request) {
      const id = idOf(request);
      if (id === undefined) refuseNoSession();
      const answer = await lookUp(request, digest(id)).catch(refuseEnded);
      return {
        session: toSession(answer.session, answer.key),
        ...(answer.key ? { key: toAdmittedKey(answer) } : {}),
      };
    },
    signIn: (request, reply, secret) =>
      begin(request, reply, async (sessionSha256) => {
        const secretSha256 = digest(secret);
        const asked = { sessionSha256, secretSha256, client: clientOf(request) };
        const call = callOf(request);
        if (operatorToken !== undefined && timingSafeEqual(secretSha256, adminSha256)) {
          const headers = { ...call.headers, ...adminHeaders };
          const { session } = await auth.createOperatorSession(asked, { ...call, headers });
          return toSession(session, undefined);
        }
        const amongOperators = operatorToken !== undefined;
        const { session, key } = await auth.createSession({ ...asked, amongOperators }, call);
        return toSession(session, key);
      }),
    signInByName: (request, reply, { name, ...proof }) =>
      begin(request, reply, async (sessionSha256) => {
        if (operatorToken === undefined) refuse(ErrorReason.INVALID_API_KEY);
        const asked = { sessionSha256, secretSha256: adminSha256, name, proof };
        const { session } = await auth.createNamedSession(
          { ...asked, client: clientOf(request) },
          adminCallOf(edge, request),
        );
        return toSession(session, undefined);
      }),
    async signInPerson(request, reply, identity, rights) {
      const call = callOf(request);
      await begin(request, reply, async (sessionSha256) => {
        if (rights.role === "operator") {
          if (operatorToken === undefined) refuse(ErrorReason.INVALID_API_KEY);
          const headers = { ...call.headers, ...adminHeaders };
          const asked = { sessionSha256, secretSha256: adminSha256, identity };
          return auth.createOperatorSession(asked, { ...call, headers });
        }
        const { accountId, role } = rights;
        const asked = { sessionSha256, identity, accountId, owner: role === "owner" };
        return auth.createIdentitySession(asked, call);
      });
    },
    async signOut(request, reply) {
      const id = idOf(request);
      if (id !== undefined) {
        await auth.endSession({ sessionSha256: digest(id) }, callOf(request));
      }
      sessionCookie.clear(request, reply);
    },
    confirmSecret: (request) => confirmSecret(edge, request, callOf(request)),
  };
}

/** Looks sessions up, a bounded number at once. */
function boundedLookUp({ peers }: Edge, adminSha256: Uint8Array) {
  let lookUps = 0;
  return async (request: FastifyRequest, sessionSha256: Uint8Array) => {
    if (lookUps >= maxSessionLookUps) {
      throw unavailable();
    }
    lookUps += 1;
    try {
      return await peers.auth.lookUpSession(
        { sessionSha256, adminSha256 },
        { headers: { [requestIdHeader]: request.id }, timeoutMs: lookUpTimeoutMs },
      );
    } finally {
      lookUps -= 1;
    }
  };
}

/** Checks the secret for an action once more, by asking auth. Refuses with SECRET_REQUIRED. */
async function confirmSecret(
  edge: Edge,
  request: FastifyRequest,
  call: CallOptions,
): Promise<void> {
  const { peers, clock } = edge;
  const { session } = request;
  const id = idOf(request);
  if (!session || id === undefined) refuseNoSession();
  if (session.identity) return refuseUnconfirmed(session, clock.now());
  if (session.operatorName !== undefined) return confirmNamed(edge, request, session, digest(id));
  const secret = request.headers[secretHeader];
  if (typeof secret !== "string" || isRepeated(request.raw, secretHeader)) {
    refuse(ErrorReason.SECRET_REQUIRED);
  }
  const { confirmed } = await peers.auth.confirmSession(
    {
      sessionSha256: digest(id),
      secretSha256: digest(secret),
      client: clientOf(request),
    },
    call,
  );
  if (!confirmed) refuse(ErrorReason.SECRET_REQUIRED);
}

/** A person who signed in by a provider has no secret here. The provider asks for the password, and its answer counts for a while. */
function refuseUnconfirmed({ identity, createdAtMs }: ConsoleSession, nowMs: number): void {
  if (identity?.confirmed && nowMs - createdAtMs < confirmedMs) return;
  refuse(ErrorReason.SECRET_REQUIRED, {
    message:
      "Sign in again at the identity provider: this needs a sign-in of the last five minutes.",
  });
}

/**
 * An operator who signed in by name gives password and code again. Each code works once, so the answer counts for some minutes, like that
 * of an identity provider. Otherwise an operator with three accounts to change would wait half a minute between them.
 */
async function confirmNamed(
  edge: Edge,
  request: FastifyRequest,
  { confirmedAtMs }: ConsoleSession,
  sessionSha256: Uint8Array,
): Promise<void> {
  if (confirmedAtMs !== undefined && edge.clock.now() - confirmedAtMs < confirmedMs) return;
  const header = request.headers[secretHeader];
  const proof =
    typeof header === "string" && !isRepeated(request.raw, secretHeader) && proofOf(header);
  if (!proof) refuse(ErrorReason.SECRET_REQUIRED, { message: proofWanted });
  const { confirmed } = await edge.peers.auth.confirmNamedSession(
    { sessionSha256, proof, client: clientOf(request) },
    adminCallOf(edge, request),
  );
  if (!confirmed) refuse(ErrorReason.SECRET_REQUIRED, { message: proofWanted });
}

const proofWanted =
  "Enter your password and a new code again: this needs 'CODE PASSWORD' in the header 'x-console-secret', the password percent-encoded.";

/** Reads `CODE PASSWORD`, whose password is percent-encoded because a header holds no other characters than those of Latin. */
function proofOf(header: string): { code: string; password: string } | undefined {
  const [, code, encoded] = /^(\S{1,64}) (\S+)$/.exec(header) ?? [];
  if (code === undefined || encoded === undefined) return undefined;
  try {
    return { code, password: decodeURIComponent(encoded) };
  } catch {
    return undefined;
  }
}

function idOf(request: FastifyRequest): string | undefined {
  const id = sessionCookie.read(request);
  return id !== undefined && sessionIdPattern.test(id) ? id : undefined;
}

function refuseNoSession(): never {
  refuse(ErrorReason.INVALID_API_KEY, {
    message: "Sign in first: there is no session, or it has ended.",
  });
}

function refuseEnded(error: unknown): never {
  const isEnded = error instanceof RefusalError && error.reason === ErrorReason.INVALID_API_KEY;
  if (isEnded) refuseNoSession();
  throw error;
}

/**
 * Options of an internal call about operators by name, before there is a session of one: with the admin token, to the replica that counts
 * failures.
 */
export function adminCallOf({ settings }: Edge, { id }: FastifyRequest): CallOptions {
  const authorization = `Bearer ${settings.console?.operatorToken}`;
  return {
    headers: { [requestIdHeader]: id, ...oneReplica, authorization },
    timeoutMs: passwordTimeoutMs,
  };
}

/** A value for the address whose failures are counted together. It does not reveal the address. */
export function clientOf({ ip }: FastifyRequest): string {
  return hash("sha256", `console client ${networkOf(ip)}`, "base64url");
}

function toSession(message: Message | undefined, key: ApiKey | undefined): ConsoleSession {
  if (!message || message.operator === (key !== undefined)) {
    throw new Error("auth answered no whole session and did not refuse");
  }
  const { identity, createTime, endTime, idleEndTime, operatorName, confirmTime } = message;
  const scopes = key && effectiveScopes(key.scopes);
  const times = [createTime, endTime, idleEndTime].map((time) => (time ? timestampMs(time) : 0));
  const [createdAtMs = 0, endsAtMs = 0, idleEndsAtMs = 0] = times;
  return {
    role: !scopes ? "operator" : scopes.has(Scope.KEYS) ? "owner" : "member",
    key: key && {
      accountId: key.accountId,
      keyId: key.keyId,
      name: key.name,
      scopes: [...effectiveScopes(key.scopes)].map(scopeName),
      models: key.allowedModels,
    },
    createdAtMs,
    endsAtMs,
    idleEndsAtMs,
    identity: identity && {
      issuer: identity.issuer,
      subject: identity.subject,
      confirmed: identity.confirmed,
    },
    operatorName: operatorName === "" ? undefined : operatorName,
    confirmedAtMs: confirmTime && timestampMs(confirmTime),
  };
}
