// Says what a stored key of an upstream is, and what its store must promise. `stored-key-store-documents.ts` keeps them.

import type { Snapshot } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";

/** A key of an upstream that an operator stored. */
export interface StoredKey {
  /** The catalog names the key by it. */
  readonly name: string;
  /** The key, sealed under its name. */
  readonly sealed: string;
  /** Its last characters, or "". */
  readonly hint: string;
  readonly setAtMs: number;
  /** The operator who set it. */
  readonly actor: string;
}

/**
 * The stored keys of upstreams. Each method is one read or write of one document, durable when its promise resolves, and safe to repeat.
 * All refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface StoredKeyStore {
  /** Makes tables, collections and indexes. It is called once, before all other methods. */
  open(): Promise<void>;
  /** Stores a key, in place of the one of its name. */
  set(key: StoredKey): Promise<void>;
  /** Replaces the seal of a key that is still sealed as it was. */
  reseal(key: StoredKey, sealed: string): Promise<void>;
  /** All of them, in the order in which they were set. */
  list(): Promise<StoredKey[]>;
  remove(name: string): Promise<void>;
}

/** The upstreams that use a stored key, by their names. */
export function usersOf({ upstreams }: Snapshot, name: string): string[] {
  return Object.values(upstreams)
    .filter(({ apiKeyStored }) => apiKeyStored === name)
    .map((upstream) => upstream.name);
}

/** Faults of upstreams whose key is not among those that are stored. Undefined: none can be. */
export function storedKeyFaults(
  { upstreams }: Snapshot,
  stored: readonly string[] | undefined,
): { path: string; message: string }[] {
  const message = stored
    ? "names a key that is not stored"
    : "needs a catalog whose versions are in the store; a file is the master of this one";
  return Object.values(upstreams)
    .filter(({ apiKeyStored }) => apiKeyStored !== "" && !stored?.includes(apiKeyStored))
    .map(({ name }) => ({ path: `upstreams.${name}.apiKeyStored`, message }));
}
