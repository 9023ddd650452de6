import type { Session } from "./session.ts";

/** Sessions of the console. Each transition is atomic for every client of the store, and durable when answered. */
export interface SessionStore {
  /** Makes tables, collections and indexes. To be called once, before all else. */
  open(): Promise<void>;
  /**
   * Keeps a new session. Of those of the same key (or of the operators) no more than `most` stay, the newest; those that
   * ended by `createdAtMs` are forgotten.
   */
  create(session: Session, most: number): Promise<void>;
  /** The session of an id's hash, of any age. */
  find(sha256: Uint8Array): Promise<Session | undefined>;
  /** Raises the time of its last use. */
  touch(sha256: Uint8Array, seenAtMs: number): Promise<void>;
  /** Ends it. A repeat does nothing. */
  end(sha256: Uint8Array): Promise<void>;
}

/** Whose sessions are counted together. */
export function holderOf({ keyId }: Pick<Session, "keyId">): string {
  return keyId ?? "operator";
}
