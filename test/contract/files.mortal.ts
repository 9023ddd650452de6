import type { Interceptor } from "@connectrpc/connect";
import type { BlobStore } from "#kit/blobs.ts";
import type { SqliteDatabase } from "#kit/sqlite.ts";

/** Stores of a process that dies at a step. */
export interface Mortal {
  /** Puts itself between a service and its stores. */
  wrap(stores: { sqlite: SqliteDatabase; blobs: BlobStore }): {
    sqlite: SqliteDatabase;
    blobs: BlobStore;
  };
  /** Puts itself between a service and its peers: a call is a step too. */
  readonly calls: Interceptor;
  /** Counts from now on. */
  arm(): void;
  /** Resolves when the process is dead: none of its steps happens any more, and none is answered. */
  readonly died: Promise<void>;
  isDead(): boolean;
}

/**
 * Dies at the `at`-th change of a store: before it is made, or after it was made and before that is known. A change is
 * a transaction, or a blob that is written or deleted.
 */
export function mortal(at: number, when: "before" | "after"): Mortal {
  const never = new Promise<never>(() => {});
  const { promise: died, resolve: die } = Promise.withResolvers<void>();
  let isArmed = false;
  let isDead = false;
  let steps = 0;

  const step = async <T>(run: () => Promise<T>): Promise<T> => {
    if (isDead) return never;
    if (!isArmed || ++steps < at) return run();
    isDead = true;
    if (when === "after") await run();
    die();
    return never;
  };
  return {
    wrap: ({ sqlite, blobs }) => ({
      sqlite: { ...sqlite, write: (work) => step(() => sqlite.write(work)) },
      blobs: {
        ...blobs,
        put: (key, source, signal) => step(() => blobs.put(key, source, signal)),
        delete: (key) => step(() => blobs.delete(key)),
      },
    }),
    calls: (next) => (req) => step(() => next(req)),
    arm() {
      isArmed = true;
    },
    died,
    isDead: () => isDead,
  };
}
