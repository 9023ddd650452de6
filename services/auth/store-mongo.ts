// Changes accounts and keys in MongoDB, and joins the parts of that store. `store-sqlite.ts` is the other one.

import type { Collection, UpdateFilter } from "mongodb";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { type Account, nameKeyOf } from "./account.ts";
import { hasHash, hashText, isSameOperation, type Key } from "./key.ts";
import { conflictPauseMs, maxConflicts } from "./limits.ts";
import type { AuthStore, MadeAccount, NewAccount, StoredKey } from "./store.ts";
import {
  type AccountDocument,
  accountOf,
  authCollections,
  authMongoSchema,
  changingFields,
  type KeyDocument,
  keyFields,
  keyOf,
} from "./store-mongo-docs.ts";
import { createPlaces, type Places } from "./store-mongo-key-places.ts";
import { createReads, findMadeBy, type KeyContext } from "./store-mongo-reads.ts";
import { createRevisions } from "./store-mongo-revisions.ts";
import { createTransitions, refuseOtherAccount, refuseUsedSecret } from "./store-transitions.ts";

/**
 * Accounts and keys in MongoDB. A key is a document, and an account is in the document of its first key. So every transition is one
 * write of one document. Indexes keep unique values unique.
 */
export function createMongoAuthStore(db: MongoDatabase): AuthStore {
  const context: KeyContext = { db, keys: db.collection(authCollections.keys) };
  const revisions = createRevisions(db);
  const places = createPlaces(context);
  const touch = (revision: bigint, key: StoredKey) => touchKey(context, key.keyId, revision);
  const reads = createReads(context, revisions);
  return {
    ...reads,
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
    ...createTransitions({
      async changeKey(keyId, next) {
        const doc = await db.attempt(() => context.keys.findOne({ _id: keyId }));
        const key = doc ? keyOf(doc) : refuse(ErrorReason.KEY_NOT_FOUND);
        const changed = next(key, false);
        if (changed === key) return key;
        if (changed.secret !== key.secret) await refuseSecretInUse(context, changed.secret.sha256);
        return revisions.change((revision) => changeKey(context, keyId, revision, next), touch);
      },
      async changeAccount(accountId, next) {
        const account = await reads.findAccount(accountId);
        if (!account) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
        if (next(account) === account) return account;
        const write = (revision: bigint) => changeAccount(context, accountId, next, revision);
        return revisions.change(write, write);
      },
    }),
    async noteUses(uses) {
      if (uses.length === 0) return;
      await db.attempt(() =>
        context.keys.bulkWrite(
          uses.map(({ keyId, atMs }) => ({
            updateOne: { filter: { _id: keyId }, update: { $max: { lastUsedAtMs: atMs } } },
          })),
          { ordered: false },
        ),
      );
    },
  };
}

/** Replaces an account by the one that `next` makes of it, in the document of its first key. Refuses as `next` does. */
function changeAccount(
  { db, keys }: KeyContext,
  accountId: string,
  next: (account: Account) => Account,
  revision: bigint,
): Promise<Account> {
  return db.attempt(async () => {
    for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
      const doc = await keys.findOne({ accountId, place: 1 });
      if (!doc) refuse(ErrorReason.ACCOUNT_NOT_FOUND);
      const account = next(accountOf(doc));
      const fields = Object.entries(changingFields(account));
      const present = fields.filter(([, value]) => value !== undefined);
      const absent = fields.filter(([, value]) => value === undefined);
      const path = (list: [string, unknown][], value?: string) =>
        Object.fromEntries(list.map(([field, own]) => [`account.${field}`, value ?? own]));
      const { matchedCount } = await keys.updateOne({ _id: doc._id, v: doc.v }, {
        $set: path(present),
        ...(absent.length > 0 ? { $unset: path(absent, "") } : {}),
        $max: { revision, "account.stateRevision": revision },
        $inc: { v: 1 },
      } as UpdateFilter<KeyDocument>);
      if (matchedCount === 1) return account;
      await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
    }
    throw awayRefusal(new Error(`overtaken ${maxConflicts} times at an account`));
  });
}

/** The account that an operation id made before. Undefined where the id is new or absent. Refuses another name or secret. */
async function replayOf(
  { db, keys }: KeyContext,
  command: NewAccount,
): Promise<MadeAccount | undefined> {
  const { operationId } = command;
  if (operationId === undefined) return undefined;
  const doc = await db.attempt(() => keys.findOne({ "account.operationId": operationId }));
  if (!doc) return undefined;
  const account = accountOf(doc);
  refuseOtherAccount(command, account, (sha256) => hashText(sha256) === doc.account?.firstHash);
  return { account, key: keyOf(doc), replayed: true };
}

/** Makes an account with its first key. Refuses as `createAccount` does. */
async function insertAccount(
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
    nameKey: nameKeyOf(name),
  };
  const doc = { ...documentOf({ ...key, revision }, 1), account: carried };
  for (let tries = 0; tries < maxConflicts; tries++) {
    const key = await insert(context, doc);
    if (key) return { account: accountOf(doc), key, replayed: false };
    const replay = await replayOf(context, command);
    if (replay) return replay;
    await refuseSecretInUse(context, command.key.secret.sha256);
    // The account that another call made first cannot be read yet.
    await context.db.clock.sleep(conflictPauseMs * tries);
  }
  throw awayRefusal(new Error("an account stands in the way that cannot be seen"));
}

/** Adds a key at a free place. Refuses as `createKey` does. */
async function insertKey(
  context: KeyContext,
  places: Places,
  key: Key,
  revision: bigint,
): Promise<StoredKey> {
  const stored = { ...key, revision };
  for (let tries = 0; tries < maxConflicts; tries++) {
    const made = key.madeBy && (await findMadeBy(context, key.madeBy.slot));
    if (made && key.madeBy && isSameOperation(made.madeBy, key.madeBy)) return made;
    const inserted = await places.with(key.accountId, (place) =>
      insert(context, documentOf(stored, place)),
    );
    if (inserted) return inserted;
    // Another call has taken the secret or the place, or has made the operation's key.
    await refuseSecretInUse(context, key.secret.sha256);
  }
  throw awayRefusal(new Error(`overtaken ${maxConflicts} times at a key's place`));
}

/** Inserts a key's document. Undefined where another document has one of its unique values. */
function insert({ db, keys }: KeyContext, doc: KeyDocument): Promise<StoredKey | undefined> {
  return db.attempt(async (unsure) => {
    try {
      await keys.insertOne(doc);
      return keyOf(doc);
    } catch (error) {
      if (!isDuplicate(error)) throw error;
      // Each call has a key id of its own. So an attempt of this call whose answer was lost wrote the document with this id.
      const own = unsure ? await keys.findOne({ _id: doc._id }) : null;
      return own ? keyOf(own) : undefined;
    }
  });
}

function documentOf(key: StoredKey, place: number): KeyDocument {
  const { keyId, accountId } = key;
  return { _id: keyId, v: 1, accountId, place, ...keyFields(key) };
}

/** Refuses with OPERATION_CONFLICT where a key has the secret. This check comes early. The unique index decides. */
async function refuseSecretInUse({ db, keys }: KeyContext, sha256: Uint8Array) {
  const hashes = hashText(sha256);
  const holder = await db.attempt(() => keys.findOne({ hashes }, { projection: { _id: 1 } }));
  if (holder) refuseUsedSecret();
}

/**
 * Replaces a key by the one that `next` makes of it, under `revision`. Where `next` answers the same object, nothing changes.
 * `unsure` means that an attempt without an answer may have made the change. Refuses as `next` does, and refuses a secret that a
 * key has.
 */
function changeKey(
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
      // A change that began later may have been written first. The document's revision never falls.
      const newest = revision > key.revision ? revision : key.revision;
      if (await replace(keys, doc, { ...changed, revision: newest }))
        return { ...changed, revision };
      await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
    }
    throw awayRefusal(new Error(`overtaken ${maxConflicts} times at a key`));
  });
}

/** Gives a changed key a newer revision, so that watchers get the change. */
function touchKey({ db, keys }: KeyContext, keyId: string, revision: bigint): Promise<StoredKey> {
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
