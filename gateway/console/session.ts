// Says what a session is within a request, who acts in it, and how an operator's internal calls are made. `sessions.ts` finds it.

import type { CallOptions } from "@connectrpc/connect";
import type { FastifyReply, FastifyRequest } from "fastify";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { requestIdHeader } from "#kit/rpc/principal.ts";
import type { Edge } from "../context.ts";
import { leavingSignal } from "../request.ts";

/**
 * The rights of a session. A member has a key, an owner a key with the scope `keys`. Both use `/console/api/v1`. An operator has
 * neither key nor account, and uses `/console/api/admin` alone.
 */
export type ConsoleRole = "member" | "owner" | "operator";

/** A session of the console, in its state when the request came. */
export interface ConsoleSession {
  readonly role: ConsoleRole;
  /** Undefined for an operator. */
  readonly key: SessionKey | undefined;
  readonly createdAtMs: number;
  /** Its absolute end. */
  readonly endsAtMs: number;
  /** Its end if no further request comes. */
  readonly idleEndsAtMs: number;
  /** The person who signed in by an identity provider. Undefined: signed in with a secret. */
  readonly identity:
    | { readonly issuer: string; readonly subject: string; readonly confirmed: boolean }
    | undefined;
  /** The operator who signed in by name. Undefined: signed in otherwise. */
  readonly operatorName: string | undefined;
  /** When that operator last gave password and code again in this session. */
  readonly confirmedAtMs: number | undefined;
}

/** The key that a session uses, in its present state. */
export interface SessionKey {
  readonly accountId: string;
  readonly keyId: string;
  readonly name: string;
  /** Names of the public API. */
  readonly scopes: readonly string[];
  /** Model ids. Empty: all. */
  readonly models: readonly string[];
}

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * True where the console asks for the secret again, in `x-console-secret`: for making keys, changing their rights, showing secrets,
     * or moving money.
     */
    asksSecret?: boolean;
    /** True where the body is a form: an upload. */
    takesForm?: boolean;
  }
  interface FastifyRequest {
    /** The session of a request below `/console/api` that needs one. Otherwise null. */
    session: ConsoleSession | null;
  }
}

/** The session of a request. */
export function sessionOf(request: FastifyRequest): ConsoleSession {
  if (!request.session) throw new Error("a route of the console was reached without a session");
  return request.session;
}

/** Refuses a session that is no operator's with PERMISSION_DENIED. A hook calls it for every path below `/console/api/admin`. */
export function requireOperator(request: FastifyRequest): ConsoleSession {
  const session = sessionOf(request);
  if (session.role === "operator") return session;
  refuse(ErrorReason.PERMISSION_DENIED, { message: "Sign in as an operator to do this." });
}

/**
 * The name of the acting person for the audit log: the admin token, an identity as `ISSUER SUBJECT`, or an operator as `operator NAME`.
 */
export function actorOf({ identity, operatorName }: ConsoleSession): string {
  if (operatorName !== undefined) return namedActor(operatorName);
  return identity ? `${identity.issuer} ${identity.subject}` : "admin token";
}

/** An operator who signed in by name, as the audit log names them. */
export function namedActor(name: string): string {
  return `operator ${name}`;
}

/** Options of an operator's internal call: the admin token, the request's id, a deadline, and a signal for when the caller leaves. */
export function operatorCallOptions(
  edge: Pick<Edge, "settings" | "cutOff">,
  request: FastifyRequest,
  reply: FastifyReply,
  timeoutMs: number,
): CallOptions & { signal: AbortSignal } {
  requireOperator(request);
  const token = edge.settings.console?.operatorToken;
  if (token === undefined) throw new Error("an operator's session on a gateway without a token");
  return {
    headers: { authorization: `Bearer ${token}`, [requestIdHeader]: request.id },
    timeoutMs,
    signal: leavingSignal(reply).signal,
  };
}
