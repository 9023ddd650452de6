import { ErrorReason, refuse } from "#kit/errors.ts";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { migrate } from "#kit/mongo/migrate.ts";
import { revoked, rotated } from "./key.ts";
import type { AuthStore, StoredKey } from "./store.ts";
import { insertAccount, insertKey, replayOf } from "./store-mongo-create.ts";
import { hasHash, keyOf } from "./store-mongo-docs.ts";
import { createPlaces } from "./store-mongo-places.ts";
import { createReads } from "./store-mongo-reads.ts";
import { createRevisions } from "./store-mongo-revisions.ts";
import { authCollections, authMongoSchema } from "./store-mongo-schema.ts";
import { changeKey, type KeyContext, refuseSecretInUse, touchKey } from "./store-mongo-update.ts";

/**
 * Accounts and keys in MongoDB: a key is a document, and an account lies in that of its first key, so that every
 * transition is one write of one document. What is unique is so by an index.
 */
export function createMongoAuthStore(db: MongoDatabase): AuthStore {
  const context: KeyContext = { db, keys: db.collection(authCollections.keys) };
  const revisions = createRevisions(db);
  const places = createPlaces(context);
  const touch = (revision: bigint, key: StoredKey) => touchKey(context, key.keyId, revision);
  const mustFind = async (keyId: string): Promise<StoredKey> => {
    const doc = await db.attempt(() => context.keys.findOne({ _id: keyId }));
    return doc ? keyOf(doc) : refuse(ErrorReason.KEY_NOT_FOUND);
  };
  return {
    ...createReads(context, revisions),
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
      rotated(await mustFind(keyId), secret, graceMs, nowMs);
      await refuseSecretInUse(context, secret.sha256);
      const rotate = (key: StoredKey, unsure: boolean) => {
        // Nobody else would bring this secret: an attempt whose answer was lost has done it.
        if (unsure && hasHash(key, secret.sha256)) return key;
        return rotated(key, secret, graceMs, nowMs);
      };
      return revisions.change((revision) => changeKey(context, keyId, revision, rotate), touch);
    },
    async revokeKey({ keyId, nowMs }) {
      const key = await mustFind(keyId);
      if (key.revokedAtMs !== undefined) return key;
      const revoke = (one: StoredKey) => revoked(one, nowMs);
      return revisions.change((revision) => changeKey(context, keyId, revision, revoke), touch);
    },
  };
}
