// Says what a version of the catalog is, and what the store of versions must promise. `version-store-documents.ts` keeps them.

import type { CatalogText } from "./source.ts";

/** The file's own place among the versions: what was in force before the first one. */
export const fileNumber = 0;

/** A version of the catalog, without its text. It never changes. */
export interface VersionFacts {
  /** From 1, without gaps, or {@link fileNumber}. */
  readonly number: number;
  /** The operator who put it in force. */
  readonly actor: string;
  /** The operator's words about it, or "". */
  readonly note: string;
  readonly madeAtMs: number;
  /** SHA-256 of the text, in hexadecimal. */
  readonly sha256: string;
  /** Number of models. */
  readonly models: number;
  /** Names the act that made it. */
  readonly operationId: string;
}

/** A version of the catalog, with the workflow files that it had when it was put in force. */
export interface CatalogVersion extends VersionFacts, CatalogText {}

/**
 * The versions of the catalog. They are added and read. There is no other change. Each method is one read or write, durable when its
 * promise resolves, and safe to repeat. All refuse with SERVICE_UNAVAILABLE where the store is away.
 */
export interface VersionStore {
  /** Makes tables, collections and indexes. It is called once, before all other methods. */
  open(): Promise<void>;
  /** Adds a version. False where one of its number or of its operation id is there: nothing is written then. */
  add(version: CatalogVersion): Promise<boolean>;
  find(number: number): Promise<CatalogVersion | undefined>;
  /** The version that an operation made. */
  madeBy(operationId: string): Promise<VersionFacts | undefined>;
  /** The newest version. Undefined: there is none. */
  newest(): Promise<VersionFacts | undefined>;
  /** Versions below a number, newest first. */
  list(page: { below: number; limit: number }): Promise<VersionFacts[]>;
}
