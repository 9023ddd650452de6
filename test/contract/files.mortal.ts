import type { Interceptor } from "@connectrpc/connect";
import type { Database } from "#kit/store/database.ts";
import type { WorldStores } from "../support/world-stores.ts";

/** The stores to which a service writes. */
export type MortalStores = Pick<WorldStores, "database" | "blobs">;

/** Stores of a process that dies at a step. */
export interface Mortal {
  /** Stands between a service and its stores. */
  wrap(stores: MortalStores): MortalStores;
  /** Stands between a service and its peers. A call is a step too. */
  readonly calls: Interceptor;
  /** A step of another kind, for example a call of an upstream. */
  readonly step: Step;
  /** Counts steps from now on. */
  arm(): void;
  /** Resolves when the process is dead. From then on no step is made, and none is answered. */
  readonly died: Promise<void>;
  /** Resolves when the steps that had begun before the death are made. A request that was sent is carried out without its process. */
  atRest(): Promise<unknown>;
  isDead(): boolean;
}

/** Does work, or never resolves. */
export type Step = <T>(run: () => Promise<T>) => Promise<T>;

/**
 * Dies at the `at`-th step: before it is made, or after it was made and before its answer. A step is a transaction of SQLite, a group of
 * simultaneous requests to MongoDB, a write or delete of a blob, or a call.
 */
export function mortal(at: number, when: "before" | "after"): Mortal {
  const never = new Promise<never>(() => {});
  const { promise: died, resolve: die } = Promise.withResolvers<void>();
  let isArmed = false;
  let isDead = false;
  let steps = 0;
  const underWay = new Set<Promise<void>>();
  const underWayUntilItEnds = <T>(work: Promise<T>): Promise<T> => {
    const over = work.then(
      () => {},
      () => {},
    );
    underWay.add(over);
    void over.then(() => underWay.delete(over));
    return work;
  };

  const step: Step = async (run) => {
    if (isDead) return never;
    if (!isArmed || ++steps < at) {
      const answer = await underWayUntilItEnds(run());
      // The step was made, but a dead process gets no answer.
      return isDead ? never : answer;
    }
    isDead = true;
    if (when === "after") await run();
    die();
    return never;
  };
  return {
    wrap: ({ database, blobs }) => ({
      database: mortalDatabase(database, step),
      blobs: {
        ...blobs,
        put: (key, source, signal) => step(() => blobs.put(key, source, signal)),
        delete: (key) => step(() => blobs.delete(key)),
      },
    }),
    calls: (next) => (req) => step(() => next(req)),
    step,
    arm() {
      isArmed = true;
    },
    died,
    atRest: () => Promise.all(underWay),
    isDead: () => isDead,
  };
}

/** A database in which each change is a step. */
export function mortalDatabase(database: Database, step: Step): Database {
  switch (database.kind) {
    case "sqlite": {
      const { sqlite } = database;
      return {
        ...database,
        sqlite: { ...sqlite, write: (work) => step(() => sqlite.write(work)) },
      };
    }
    case "mongodb": {
      const { mongo } = database;
      return {
        ...database,
        mongo: { ...mongo, attempt: (work) => step(() => mongo.attempt(work)) },
      };
    }
  }
}
