import type { Interceptor } from "@connectrpc/connect";
import type { Database } from "#kit/store/database.ts";
import type { WorldStores } from "../support/world-stores.ts";

/** What a service writes to. */
export type MortalStores = Pick<WorldStores, "database" | "blobs">;

/** Stores of a process that dies at a step. */
export interface Mortal {
  /** Puts itself between a service and its stores. */
  wrap(stores: MortalStores): MortalStores;
  /** Puts itself between a service and its peers: a call is a step too. */
  readonly calls: Interceptor;
  /** A step that something else makes for it, such as an upstream that is asked. */
  readonly step: Step;
  /** Counts from now on. */
  arm(): void;
  /** Resolves when the process is dead: none of its steps happens any more, and none is answered. */
  readonly died: Promise<void>;
  /** Resolves when the steps that were under way when it died have happened: what a process has asked for happens without it. */
  atRest(): Promise<unknown>;
  isDead(): boolean;
}

/** Makes work, or never resolves any more. */
export type Step = <T>(run: () => Promise<T>) => Promise<T>;

/**
 * Dies at the `at`-th step: before it is made, or after it was made and before that is known. A step is a transaction of
 * SQLite, all that is asked of MongoDB at once, a blob that is written or deleted, or a call.
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
      // It happened, and no process is left to hear of it.
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

/** A database each of whose changes is a step. */
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
