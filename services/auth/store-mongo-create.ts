import { ErrorReason, refuse } from "#kit/errors.ts";
import { awayRefusal, isDuplicate } from "#kit/mongo/errors.ts";
import type { Key } from "./key.ts";
import { conflictPauseMs, maxConflicts } from "./limits.ts";
import type { MadeAccount, NewAccount, StoredKey } from "./store.ts";
import { accountOf, hashText, keyFields, keyOf } from "./store-mongo-docs.ts";
import type { Places } from "./store-mongo-places.ts";
import type { AccountDocument, KeyDocument } from "./store-mongo-schema.ts";
import { type KeyContext, refuseSecretInUse } from "./store-mongo-update.ts";

/** What an operation id made before; undefined where it is new, or absent. Refuses another name or secret. */
export async function replayOf(
  { db, keys }: KeyContext,
  { operationId, account, key, secretBrought }: NewAccount,
): Promise<MadeAccount | undefined> {
  if (operationId === undefined) return undefined;
  const doc = await db.attempt(() => keys.findOne({ "account.operationId": operationId }));
  if (!doc) return undefined;
  // The first secret, not the present one: a rotation in between makes no repeat wrong.
  const isSameSecret = !secretBrought || doc.account?.firstHash === hashText(key.secret.sha256);
  if (doc.account?.name !== account.name || !isSameSecret) refuse(ErrorReason.OPERATION_MISMATCH);
  return { account: accountOf(doc), key: keyOf(doc), replayed: true };
}

/** Makes an account with its first key. Refuses as `createAccount` does. */
export async function insertAccount(
  context: KeyContext,
  command: NewAccount,
  revision: bigint,
): Promise<MadeAccount> {
  const { account, key, operationId } = command;
  const { name, createdAtMs, requestsPerMinute } = account;
  const carried: AccountDocument = {
    name,
    createdAtMs,
    requestsPerMinute,
    ...(operationId === undefined ? {} : { operationId }),
    firstHash: hashText(key.secret.sha256),
  };
  const doc = { ...documentOf({ ...key, revision }, 1), account: carried };
  for (let tries = 0; tries < maxConflicts; tries++) {
    const key = await insert(context, doc);
    if (key) return { account: accountOf(doc), key, replayed: false };
    const replay = await replayOf(context, command);
    if (replay) return replay;
    await refuseSecretInUse(context, command.key.secret.sha256);
    // Whoever was first is not yet to be seen.
    await context.db.clock.sleep(conflictPauseMs * tries);
  }
  throw awayRefusal(new Error("an account stands in the way that cannot be seen"));
}

/** Adds a key at a place that is free. Refuses as `createKey` does. */
export async function insertKey(
  context: KeyContext,
  places: Places,
  key: Key,
  revision: bigint,
): Promise<StoredKey> {
  const stored = { ...key, revision };
  for (let tries = 0; tries < maxConflicts; tries++) {
    const inserted = await places.with(key.accountId, (place) =>
      insert(context, documentOf(stored, place)),
    );
    if (inserted) return inserted;
    // Either the secret was taken, or the place.
    await refuseSecretInUse(context, key.secret.sha256);
  }
  throw awayRefusal(new Error(`overtaken ${maxConflicts} times at a key's place`));
}

/** Undefined where something that must be unique is taken. */
function insert({ db, keys }: KeyContext, doc: KeyDocument): Promise<StoredKey | undefined> {
  return db.attempt(async (unsure) => {
    try {
      await keys.insertOne(doc);
      return keyOf(doc);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      // Ids are drawn for each call: what has this one is what an attempt without an answer wrote.
      const own = unsure ? await keys.findOne({ _id: doc._id }) : null;
      return own ? keyOf(own) : undefined;
    }
  });
}

function documentOf(key: StoredKey, place: number): KeyDocument {
  const { keyId, accountId } = key;
  return { _id: keyId, v: 1, accountId, place, ...keyFields(key) };
}
