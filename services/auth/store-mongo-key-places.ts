// Finds a free place among an account's 1,000 for each new key in MongoDB. So the bound on an account's keys holds without a
// transaction.

import type { Collection } from "mongodb";
import { maxKeysPerAccount } from "#common/words/request-bounds.ts";
import { createSharedLooks } from "#kit/base/batching.ts";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import type { KeyDocument } from "./store-mongo-docs.ts";
import { refuseMoreKeys } from "./store-transitions.ts";

/** Chooses places for new keys. A place is only a proposal. The unique index decides which insert gets it. */
export interface Places {
  /**
   * Runs `use` with a place that was free a moment ago. Prefers a place that no other call of this process uses. Refuses with
   * ACCOUNT_NOT_FOUND, and with OPERATION_CONFLICT where the account has 1,000 keys.
   */
  with<T>(accountId: string, use: (place: number) => Promise<T>): Promise<T>;
}

/** Makes the {@link Places} of a store. */
export function createPlaces({
  db,
  keys,
}: {
  db: MongoDatabase;
  keys: Collection<KeyDocument>;
}): Places {
  const inUse = new Map<string, Set<number>>();
  // The places may be out of date. Then the insert fails, and the caller tries again.
  const looks = createSharedLooks<Set<number>>();
  const taken = (accountId: string) =>
    looks.add(accountId, async () => {
      const find = () => keys.find({ accountId }, { projection: { _id: 0, place: 1 } }).toArray();
      return new Set((await db.attempt(find)).map(({ place }) => place));
    });
  return {
    async with(accountId, use) {
      const stored = await taken(accountId);
      if (stored.size === 0) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
      const used = inUse.get(accountId) ?? new Set();
      const place = choose(stored, used);
      inUse.set(accountId, used.add(place));
      try {
        return await use(place);
      } finally {
        used.delete(place);
        if (used.size === 0) inUse.delete(accountId);
      }
    },
  };
}

/** A random free place, so that processes seldom choose the same one. Prefers a place that no call of this process uses. */
function choose(stored: ReadonlySet<number>, used: ReadonlySet<number>): number {
  const all = Array.from({ length: maxKeysPerAccount }, (_, i) => i + 1);
  const free = all.filter((place) => !stored.has(place));
  const unused = free.filter((place) => !used.has(place));
  const list = unused.length > 0 ? unused : free;
  const place = list[Math.floor(Math.random() * list.length)];
  return place ?? refuseMoreKeys();
}
