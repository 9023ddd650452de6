import type { Collection, Filter } from "mongodb";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import type { Account } from "./key.ts";
import { type AccountCursor, type AuthStore, beyond, type StoredKey } from "./store.ts";
import { accountOf, hashText, type KeyDocument, keyOf } from "./store-mongo-docs.ts";
import type { Revisions } from "./store-mongo-revisions.ts";

/** Where keys are. */
export interface KeyContext {
  db: MongoDatabase;
  keys: Collection<KeyDocument>;
}

/** The part of the store that changes nothing. */
type Reads = Pick<
  AuthStore,
  | "findBySecretHash"
  | "findKey"
  | "findKeyMadeBy"
  | "findAccount"
  | "listAccounts"
  | "searchAccounts"
  | "closingAccounts"
  | "listAllKeys"
  | "listKeys"
  | "revision"
  | "changesSince"
>;

/** Makes that part. */
export function createReads({ db, keys }: KeyContext, revisions: Revisions): Reads {
  const findAccount = async (accountId: string): Promise<Account | undefined> => {
    const doc = await db.attempt(() => keys.findOne({ accountId, place: 1 }));
    return doc ? accountOf(doc) : undefined;
  };
  return {
    async findBySecretHash(sha256) {
      // The revision first: what changes after it may be in the key, what changed before it must be.
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
    listAccounts: ({ after, limit }) =>
      db.attempt(async () => {
        const docs = await keys
          .find(accountsAfter(after))
          .sort({ "account.createdAtMs": 1, accountId: 1 })
          .limit(limit)
          .toArray();
        return docs.map(accountOf);
      }),
    searchAccounts: ({ by, prefix, after, limit }) =>
      db.attempt(async () => {
        const range = { $gte: prefix, $lt: beyond(prefix) };
        const from = after ? { $gt: after.accountId } : {};
        const [filter, sort] =
          by === "id"
            ? [{ accountId: { ...range, ...from }, place: 1 }, { accountId: 1, place: 1 } as const]
            : [
                {
                  "account.nameKey": { ...range, ...(after ? { $gte: after.nameKey } : {}) },
                  ...(after
                    ? {
                        $or: [
                          { "account.nameKey": { $gt: after.nameKey } },
                          { accountId: { $gt: after.accountId } },
                        ],
                      }
                    : {}),
                },
                { "account.nameKey": 1, accountId: 1 } as const,
              ];
        const docs = await keys
          .find(filter as Filter<KeyDocument>)
          .sort(sort)
          .limit(limit)
          .toArray();
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
    listAllKeys: ({ prefix, after, limit }) =>
      db.attempt(async () => {
        const [filter, sort] =
          prefix === undefined
            ? [
                after
                  ? {
                      createdAtMs: { $gte: after.createdAtMs },
                      $or: [
                        { createdAtMs: { $gt: after.createdAtMs } },
                        { _id: { $gt: after.keyId } },
                      ],
                    }
                  : { createdAtMs: { $gte: 0 } },
                { createdAtMs: 1, _id: 1 } as const,
              ]
            : [
                {
                  _id: {
                    $gte: prefix,
                    $lt: beyond(prefix),
                    ...(after ? { $gt: after.keyId } : {}),
                  },
                },
                { _id: 1 } as const,
              ];
        const docs = await keys
          .find(filter as Filter<KeyDocument>)
          .sort(sort)
          .limit(limit)
          .toArray();
        return docs.map(keyOf);
      }),
    async listKeys(accountId) {
      const docs = await db.attempt(() => keys.find({ accountId }).toArray());
      if (docs.length === 0) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
      return docs.map(keyOf).sort(byAge);
    },
    revision: async () => (await revisions.read()).told,
    async changesSince(since, limit) {
      // The revision first: what is written in between is told now and again, never not at all.
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

/** The key that an operation made. */
export async function findMadeBy(
  { db, keys }: KeyContext,
  slot: string,
): Promise<StoredKey | undefined> {
  const doc = await db.attempt(() => keys.findOne({ "madeBy.slot": slot }));
  return doc ? keyOf(doc) : undefined;
}
