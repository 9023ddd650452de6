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
  /** Ends a session. A repeat does nothing. */
  end(sha256: Uint8Array): Promise<void>;
}

/** The key whose sessions are counted together, or the operators. */
export function holderOf({ keyId }: Pick<Session, "keyId">): string {
  return keyId ?? "operator";
}
