// Declares what the store of the console's sessions must promise. `session-store-documents.ts` keeps the promises.

import type { Session } from "./session.ts";

/** Sessions of the console. Each transition is atomic for every client of the store, and durable when answered. */
export interface SessionStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /**
   * Stores a new session. Of the sessions of the same key, or of the operators, only the newest `most` stay. Deletes sessions that
   * ended by `createdAtMs`.
   */
  create(session: Session, most: number): Promise<void>;
  /** The session with this hash of its id, of any age. */
  find(sha256: Uint8Array): Promise<Session | undefined>;
  /** Raises the time of a session's last use. */
  touch(sha256: Uint8Array, seenAtMs: number): Promise<void>;
  /** Records that a session's operator gave password and code again. */
  confirm(sha256: Uint8Array, confirmedAtMs: number): Promise<void>;
  /** Ends a session. A repeat does nothing. */
  end(sha256: Uint8Array): Promise<void>;
  /** Ends all sessions of an operator who signs in by name. */
  endOf(operatorName: string): Promise<void>;
}

/** The key or named operator whose sessions are counted together, or the other operators. */
export function holderOf({ keyId, operator }: Pick<Session, "keyId" | "operator">): string {
  return keyId ?? (operator ? operatorHolder(operator.name) : "operator");
}

/** The holder of the sessions of an operator who signs in by name. No key's id has a space. */
export function operatorHolder(name: string): string {
  return `operator ${name}`;
}
