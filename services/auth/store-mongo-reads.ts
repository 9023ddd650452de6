import type { Filter } from "mongodb";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { Account } from "./key.ts";
import type { AccountCursor, AuthStore, StoredKey } from "./store.ts";
import { accountOf, hashText, keyOf } from "./store-mongo-docs.ts";
import type { Revisions } from "./store-mongo-revisions.ts";
import type { KeyDocument } from "./store-mongo-schema.ts";
import type { KeyContext } from "./store-mongo-update.ts";

/** The part of the store that changes nothing. */
export type Reads = Pick<
  AuthStore,
  "findBySecretHash" | "findAccount" | "listAccounts" | "listKeys" | "revision" | "changesSince"
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
    listAccounts: ({ after, limit }) =>
      db.attempt(async () => {
        const docs = await keys
          .find(accountsAfter(after))
          .sort({ "account.createdAtMs": 1, accountId: 1 })
          .limit(limit)
          .toArray();
        return docs.map(accountOf);
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
          .find({ revision: { $gt: since } }, { projection: { _id: 1 } })
          .limit(limit + 1)
          .toArray(),
      );
      if (docs.length > limit) return undefined;
      return { revision: told, keyIds: docs.map(({ _id }) => _id) };
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
