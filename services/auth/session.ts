// Says what a session of the console is, and when it ends by age or without use. It is pure. `sessions.ts` begins and ends them.

import {
  maxSeenLagMs,
  type SessionBounds,
  sessionBoundsOfKeys,
  sessionBoundsOfOperators,
} from "./limits.ts";

/** A person that an identity provider identified. */
export interface SessionIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** Did the provider ask for a password, or the like, for this very sign-in? */
  readonly confirmed: boolean;
}

/** A session of the console. Its id is a secret, so only its hash is stored. */
export interface Session {
  /** SHA-256 of its id. */
  readonly sha256: Uint8Array;
  /** The key that it acts with. Absent for an operator's session. */
  readonly keyId?: string;
  /** SHA-256 of the secret that the key, or the operator, had at the beginning. Another secret ends the session. */
  readonly secretSha256: Uint8Array;
  /** Absent where the person signed in with a secret, or by name. */
  readonly identity?: SessionIdentity;
  /** The operator who signed in by name, and the epoch of the operator then. */
  readonly operator?: { readonly name: string; readonly epoch: string };
  /** When the operator last gave password and code again. */
  readonly confirmedAtMs?: number;
  readonly createdAtMs: number;
  /** The last use, up to a minute early. */
  readonly seenAtMs: number;
  readonly endsAtMs: number;
}

export function newSession(
  begun: Pick<Session, "sha256" | "keyId" | "secretSha256" | "identity" | "operator">,
  nowMs: number,
): Session {
  const { totalMs } = boundsOf(begun);
  return { ...begun, createdAtMs: nowMs, seenAtMs: nowMs, endsAtMs: nowMs + totalMs };
}

/** The acting operator of a session, as the audit log names them. */
export function actorOf({ identity, operator }: Pick<Session, "identity" | "operator">): string {
  if (operator) return `operator ${operator.name}`;
  return identity ? `${identity.issuer} ${identity.subject}` : "admin token";
}

/** The session's end without a further use. */
export function idleEndOf(session: Session): number {
  return Math.min(session.seenAtMs + boundsOf(session).idleMs, session.endsAtMs);
}

/** Is the session too old, or was it unused for too long? At the very millisecond of its end it is over. */
export function isOver(session: Session, nowMs: number): boolean {
  return nowMs >= idleEndOf(session);
}

/** Is the stored time of the last use too old? */
export function isSeenLate({ seenAtMs }: Session, nowMs: number): boolean {
  return nowMs - seenAtMs >= maxSeenLagMs;
}

function boundsOf({ keyId }: Pick<Session, "keyId">): SessionBounds {
  return keyId === undefined ? sessionBoundsOfOperators : sessionBoundsOfKeys;
}
