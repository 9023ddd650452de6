import type { Collection } from "mongodb";
import { ErrorReason, refuse } from "#kit/errors.ts";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/mongo/errors.ts";
import type { Key } from "./key.ts";
import { conflictPauseMs, maxConflicts } from "./limits.ts";
import type { StoredKey } from "./store.ts";
import { hasHash, hashText, keyFields, keyOf } from "./store-mongo-docs.ts";
import type { KeyDocument } from "./store-mongo-schema.ts";

/** Where keys are. */
export interface KeyContext {
  db: MongoDatabase;
  keys: Collection<KeyDocument>;
}

/** Refuses with OPERATION_CONFLICT where some key has the secret; early, for the index has the last word. */
export async function refuseSecretInUse({ db, keys }: KeyContext, sha256: Uint8Array) {
  const hashes = hashText(sha256);
  const holder = await db.attempt(() => keys.findOne({ hashes }, { projection: { _id: 1 } }));
  if (holder) refuseUsedSecret();
}

/** The refusal of a secret that another key has. */
export function refuseUsedSecret(): never {
  refuse(ErrorReason.OPERATION_CONFLICT, { message: "The secret belongs to another key." });
}

/**
 * Puts what `next` makes of a key in its place, under `revision`; leaves it as it is where `next` does. `unsure`: the key
 * may be what `next` made of it already. Refuses as `next` does, and a secret that another key has.
 */
export function changeKey(
  { db, keys }: KeyContext,
  keyId: string,
  revision: bigint,
  next: (key: StoredKey, unsure: boolean) => Key,
): Promise<StoredKey> {
  return db.attempt(async (unsure) => {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      const doc = await keys.findOne({ _id: keyId });
      if (!doc) refuse(ErrorReason.KEY_NOT_FOUND);
      const key = keyOf(doc);
      const changed = next(key, unsure);
      if (changed === key) return key;
      const isNewSecret = changed.secret !== key.secret;
      if (isNewSecret && hasHash(key, changed.secret.sha256)) refuseUsedSecret();
      // A change that began later may have come first: the document's revision never falls.
      const newest = revision > key.revision ? revision : key.revision;
      if (await replace(keys, doc, { ...changed, revision: newest }))
        return { ...changed, revision };
      await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
    }
    throw awayRefusal(new Error(`overtaken ${maxConflicts} times at a key`));
  });
}

/** Gives a key that was changed a newer revision, so that the change is told. */
export function touchKey(
  { db, keys }: KeyContext,
  keyId: string,
  revision: bigint,
): Promise<StoredKey> {
  return db.attempt(async () => {
    const doc = await keys.findOneAndUpdate(
      { _id: keyId },
      { $max: { revision }, $inc: { v: 1 } },
      { returnDocument: "after" },
    );
    return doc ? keyOf(doc) : refuse(ErrorReason.KEY_NOT_FOUND);
  });
}

async function replace(
  keys: Collection<KeyDocument>,
  doc: KeyDocument,
  key: StoredKey,
): Promise<boolean> {
  const { _id, v, accountId, place, account } = doc;
  const whole = { v: v + 1, accountId, place, ...keyFields(key), ...(account ? { account } : {}) };
  try {
    const { matchedCount } = await keys.replaceOne({ _id, v }, whole);
    return matchedCount === 1;
  } catch (error) {
    if (isDuplicate(error)) refuseUsedSecret();
    throw error;
  }
}
