import {
  maxSeenLagMs,
  type SessionBounds,
  sessionBoundsOfKeys,
  sessionBoundsOfOperators,
} from "./limits.ts";

/** A person whom an identity provider vouches for. */
export interface SessionIdentity {
  readonly issuer: string;
  readonly subject: string;
  /** Was the person asked for the password, or the like, for this very sign-in? */
  readonly confirmed: boolean;
}

/** A session of the console. Its id is a secret, and is kept as a hash alone. */
export interface Session {
  /** SHA-256 of its id. */
  readonly sha256: Uint8Array;
  /** The key that it acts with; absent: it is an operator's. */
  readonly keyId?: string;
  /** SHA-256 of the secret that the key, or the operator, had when it began: with another one it is over. */
  readonly secretSha256: Uint8Array;
  /** Absent: who knows the secret. */
  readonly identity?: SessionIdentity;
  readonly createdAtMs: number;
  /** When it was last used, up to a minute early. */
  readonly seenAtMs: number;
  readonly endsAtMs: number;
}

/** A session that begins now. */
export function newSession(
  begun: Pick<Session, "sha256" | "keyId" | "secretSha256" | "identity">,
  nowMs: number,
): Session {
  const { totalMs } = boundsOf(begun);
  return { ...begun, createdAtMs: nowMs, seenAtMs: nowMs, endsAtMs: nowMs + totalMs };
}

/** Its end where it is not used before that. */
export function idleEndOf(session: Session): number {
  return Math.min(session.seenAtMs + boundsOf(session).idleMs, session.endsAtMs);
}

/** Is it too old, or was it unused for too long? An end is exclusive. */
export function isOver(session: Session, nowMs: number): boolean {
  return nowMs >= idleEndOf(session);
}

/** Is a use now worth a write? */
export function isSeenLate({ seenAtMs }: Session, nowMs: number): boolean {
  return nowMs - seenAtMs >= maxSeenLagMs;
}

function boundsOf({ keyId }: Pick<Session, "keyId">): SessionBounds {
  return keyId === undefined ? sessionBoundsOfOperators : sessionBoundsOfKeys;
}
