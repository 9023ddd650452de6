import type { Collection, Filter } from "mongodb";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { migrate } from "#kit/mongo/migrate.ts";
import type { Account } from "./key.ts";
import { revoked, rotated } from "./key.ts";
import type { AccountCursor, AuthStore, KeyChanges, StoredKey } from "./store.ts";
import { insertAccount, insertKey, replayOf } from "./store-mongo-create.ts";
import { accountOf, hasHash, hashText, keyOf } from "./store-mongo-docs.ts";
import { createPlaces } from "./store-mongo-places.ts";
import { createRevisions } from "./store-mongo-revisions.ts";
import { authCollections, authMongoSchema, type KeyDocument } from "./store-mongo-schema.ts";
import { changeKey, refuseSecretInUse, touchKey } from "./store-mongo-update.ts";

/**
 * Accounts and keys in MongoDB: a key is a document, and an account lies in that of its first key, so that every
 * transition is one write of one document. What is unique is so by an index.
 */
export function createMongoAuthStore(db: MongoDatabase): AuthStore {
  const keys = db.collection<KeyDocument>(authCollections.keys);
  const revisions = createRevisions(db);
  const context = { db, keys };
  const places = createPlaces(context);
  const touch = (revision: bigint, key: StoredKey) => touchKey(context, key.keyId, revision);

  return {
    open: () => migrate(db, [authMongoSchema]),
    async createAccount(command) {
      const replay = await replayOf(context, command);
      if (replay) return replay;
      await refuseSecretInUse(context, command.key.secret.sha256);
      return revisions.change(
        (revision) => insertAccount(context, command, revision),
        async (revision, made) => ({ ...made, key: await touch(revision, made.key) }),
      );
    },
    createKey: (key) =>
      revisions.change((revision) => insertKey(context, places, key, revision), touch),
    async rotateKey({ keyId, secret, graceMs, nowMs }) {
      rotated(await mustFindKey(keys, db, keyId), secret, graceMs, nowMs);
      await refuseSecretInUse(context, secret.sha256);
      const rotate = (key: StoredKey, unsure: boolean) => {
        // Nobody else would bring this secret: an attempt whose answer was lost has done it.
        if (unsure && hasHash(key, secret.sha256)) return key;
        return rotated(key, secret, graceMs, nowMs);
      };
      return revisions.change((revision) => changeKey(context, keyId, revision, rotate), touch);
    },
    async revokeKey({ keyId, nowMs }) {
      const key = await mustFindKey(keys, db, keyId);
      if (key.revokedAtMs !== undefined) return key;
      const revoke = (one: StoredKey) => revoked(one, nowMs);
      return revisions.change((revision) => changeKey(context, keyId, revision, revoke), touch);
    },
    async findBySecretHash(sha256) {
      // The revision first: what changes after it may be in the key, what changed before it must be.
      const { told } = await revisions.read();
      const doc = await db.attempt(() => keys.findOne({ hashes: hashText(sha256) }));
      if (!doc) return undefined;
      const account = doc.account ? accountOf(doc) : await mustFindAccount(keys, db, doc.accountId);
      return { key: keyOf(doc), account, revision: told };
    },
    findAccount: (accountId) => findAccount(keys, db, accountId),
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
    async changesSince(since, limit): Promise<KeyChanges | undefined> {
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

async function mustFindKey(
  keys: Collection<KeyDocument>,
  db: MongoDatabase,
  keyId: string,
): Promise<StoredKey> {
  const doc = await db.attempt(() => keys.findOne({ _id: keyId }));
  return doc ? keyOf(doc) : refuse(ErrorReason.KEY_NOT_FOUND);
}

async function findAccount(
  keys: Collection<KeyDocument>,
  db: MongoDatabase,
  accountId: string,
): Promise<Account | undefined> {
  const doc = await db.attempt(() => keys.findOne({ accountId, place: 1 }));
  return doc ? accountOf(doc) : undefined;
}

async function mustFindAccount(
  keys: Collection<KeyDocument>,
  db: MongoDatabase,
  accountId: string,
): Promise<Account> {
  return (await findAccount(keys, db, accountId)) ?? refuse(ErrorReason.ACCOUNT_NOT_FOUND);
}
