// Reads accounts and keys from MongoDB: by secret, by id, by pages. It changes nothing.

import type { Collection, Filter } from "mongodb";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import type { Account } from "./account.ts";
import { hashText } from "./key.ts";
import {
  type AccountCursor,
  type AccountSearch,
  type AuthReads,
  beyond,
  type KeyPage,
  type StoredKey,
} from "./store.ts";
import { accountOf, type KeyDocument, keyOf } from "./store-mongo-docs.ts";
import type { Revisions } from "./store-mongo-revisions.ts";

/** The database and its collection of keys. */
export interface KeyContext {
  db: MongoDatabase;
  keys: Collection<KeyDocument>;
}

/** Makes the part of the store that changes nothing. */
export function createReads({ db, keys }: KeyContext, revisions: Revisions): AuthReads {
  const findAccount = async (accountId: string): Promise<Account | undefined> => {
    const doc = await db.attempt(() => keys.findOne({ accountId, place: 1 }));
    return doc ? accountOf(doc) : undefined;
  };
  return {
    async findBySecretHash(sha256) {
      // Reads the revision first. The key must contain all changes up to that revision, and may contain later ones.
      const { told } = await revisions.read();
      const doc = await db.attempt(() => keys.findOne({ hashes: hashText(sha256) }));
      if (!doc) return undefined;
      const account = doc.account ? accountOf(doc) : await findAccount(doc.accountId);
      if (!account) throw new Error(`account ${doc.accountId} has keys, but no first one`);
      return { key: keyOf(doc), account, revision: told };
    },
    findAccount,
    async findKey(keyId) {
      const doc = await db.attempt(() => keys.findOne({ _id: keyId }));
      return doc ? keyOf(doc) : undefined;
    },
    findKeyMadeBy: (slot) => findMadeBy({ db, keys }, slot),
    findAccounts: (accountIds) =>
      db.attempt(async () => {
        const named = { accountId: { $in: [...accountIds] }, place: 1 };
        return (await keys.find(named).toArray()).map(accountOf);
      }),
    listAccounts: ({ after, limit }) =>
      db.attempt(async () => {
        const docs = await keys
          .find(accountsAfter(after))
          .sort({ "account.createdAtMs": 1, accountId: 1 })
          .limit(limit)
          .toArray();
        return docs.map(accountOf);
      }),
    searchAccounts: ({ limit, ...search }) =>
      db.attempt(async () => {
        const { filter, sort } = accountsFound(search);
        const docs = await keys.find(filter).sort(sort).limit(limit).toArray();
        return docs.map(accountOf);
      }),
    closingAccounts: (limit) =>
      db.attempt(async () => {
        const docs = await keys
          .find({ "account.isClosing": true })
          .sort({ "account.closingAtMs": 1 })
          .limit(limit)
          .toArray();
        return docs.map(accountOf);
      }),
    listAllKeys: ({ limit, ...search }) =>
      db.attempt(async () => {
        const { filter, sort } = keysFound(search);
        const docs = await keys.find(filter).sort(sort).limit(limit).toArray();
        return docs.map(keyOf);
      }),
    async listKeys(accountId) {
      const docs = await db.attempt(() => keys.find({ accountId }).toArray());
      if (docs.length === 0) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
      return docs.map(keyOf).sort(byAge);
    },
    revision: async () => (await revisions.read()).told,
    async changesSince(since, limit) {
      // Reads the revision first. A change that is written in between may be answered twice, but is not missed.
      const { told, last } = await revisions.read();
      if (since > told) return undefined;
      if (since === last) return { revision: told, keyIds: [] };
      const docs = await db.attempt(() =>
        keys
          .find(
            { revision: { $gt: since } },
            { projection: { _id: 1, accountId: 1, "account.stateRevision": 1 } },
          )
          .limit(limit + 1)
          .toArray(),
      );
      const changed = docs.filter((doc) => (doc.account?.stateRevision ?? 0n) > since);
      const keyIds = new Set(docs.map(({ _id }) => _id));
      for (const { accountId } of changed) {
        const ofAccount = await db.attempt(() =>
          keys.find({ accountId }, { projection: { _id: 1 } }).toArray(),
        );
        for (const { _id } of ofAccount) keyIds.add(_id);
      }
      return keyIds.size > limit ? undefined : { revision: told, keyIds: [...keyIds] };
    },
  };
}

function byAge(a: StoredKey, b: StoredKey): number {
  return a.createdAtMs - b.createdAtMs || (a.keyId < b.keyId ? -1 : 1);
}

function accountsAfter(after: AccountCursor | undefined): Filter<KeyDocument> {
  if (!after) return { "account.createdAtMs": { $gte: 0 } };
  const { createdAtMs, accountId } = after;
  return {
    "account.createdAtMs": { $gte: createdAtMs },
    $or: [{ "account.createdAtMs": { $gt: createdAtMs } }, { accountId: { $gt: accountId } }],
  };
}

/** A query, and the order of an index. */
interface Search {
  filter: Filter<KeyDocument>;
  sort: Record<string, 1>;
}

/** The search for accounts whose id or name begins with the prefix, in the order of ids or names. */
function accountsFound({ by, prefix, after }: Omit<AccountSearch, "limit">): Search {
  const range = { $gte: prefix, $lt: beyond(prefix) };
  if (by === "id") {
    const from = after ? { $gt: after.accountId } : {};
    return {
      filter: { accountId: { ...range, ...from }, place: 1 },
      sort: { accountId: 1, place: 1 },
    };
  }
  const sort = { "account.nameKey": 1, accountId: 1 } as const;
  if (!after) return { filter: { "account.nameKey": range }, sort };
  const { nameKey, accountId } = after;
  return {
    filter: {
      "account.nameKey": { ...range, $gte: nameKey },
      $or: [{ "account.nameKey": { $gt: nameKey } }, { accountId: { $gt: accountId } }],
    },
    sort,
  };
}

/** The search for all keys by age, or for keys whose id begins with the prefix, by id. */
function keysFound({ prefix, after }: Omit<KeyPage, "limit">): Search {
  if (prefix !== undefined) {
    const from = after ? { $gt: after.keyId } : {};
    return { filter: { _id: { $gte: prefix, $lt: beyond(prefix), ...from } }, sort: { _id: 1 } };
  }
  const sort = { createdAtMs: 1, _id: 1 } as const;
  if (!after) return { filter: { createdAtMs: { $gte: 0 } }, sort };
  const { createdAtMs, keyId } = after;
  return {
    filter: {
      createdAtMs: { $gte: createdAtMs },
      $or: [{ createdAtMs: { $gt: createdAtMs } }, { _id: { $gt: keyId } }],
    },
    sort,
  };
}

/** The key that an operation made. */
export async function findMadeBy(
  { db, keys }: KeyContext,
  slot: string,
): Promise<StoredKey | undefined> {
  const doc = await db.attempt(() => keys.findOne({ "madeBy.slot": slot }));
  return doc ? keyOf(doc) : undefined;
}
