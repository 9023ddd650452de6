// Declares the documents and indexes of accounts and keys in MongoDB, and turns documents into keys and back.

import { storedLimitReset } from "#common/words/key-limits.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { indexStep, type MongoSchema } from "#kit/store/mongo/migrate.ts";
import type { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { type Account, nameKeyOf } from "./account.ts";
import { hashText, type Key, type KeyOperation } from "./key.ts";
import type { StoredKey } from "./store.ts";

/** Collections of auth. */
export const authCollections = { keys: "auth_key", revision: "auth_revision" } as const;

/**
 * A key. The document of an account's first key carries the account, so that one write makes both. The document of a deleted key
 * stays. So an account's keys have the places 1 to 1,000, each once.
 */
export interface KeyDocument {
  /** The key id. */
  _id: string;
  /** Rises with every change. Compare-and-set compares it. */
  v: number;
  accountId: string;
  place: number;
  /**
   * SHA-256 of the key's secret, and of the former secret where that has a grace. In lower-case hexadecimal. No other key has them.
   */
  hashes: string[];
  hint: string;
  /** End of the former secret's grace. */
  formerEndMs?: number;
  scopes: number[];
  allowedModels: string[];
  createdAtMs: number;
  expiresAtMs?: number;
  revokedAtMs?: number;
  monthlyUsdMicrosLimit?: bigint;
  requestsPerMinute: number;
  name?: string;
  disabled?: true;
  lastUsedAtMs?: number;
  updatedAtMs?: number;
  madeBy?: KeyOperation;
  rotations?: KeyOperation[];
  webhookUrl?: string;
  limitReset?: number;
  revision: bigint;
  /** Only at place 1. */
  account?: AccountDocument;
}

export interface AccountDocument {
  name: string;
  firstName?: string;
  notes?: string;
  createdAtMs: number;
  requestsPerMinute: number;
  rateIsSet?: true;
  /** The operation id of the call that made the account. */
  operationId?: string;
  /** Hash of the key's first secret. Where a repeat of that call brings a secret, it must be this one. */
  firstHash: string;
  suspendedAtMs?: number;
  closingAtMs?: number;
  closedAtMs?: number;
  /** Present from the beginning of the account's closing to its end. */
  isClosing?: true;
  /**
   * The name in the form of `nameKeyOf`. Absent where a process of an earlier version made the account while this version was
   * running.
   */
  nameKey?: string;
  /** The revision of the account's last change of state. All of the account's keys changed at this revision. */
  stateRevision?: bigint;
}

/** The only document that processes poll. */
export interface RevisionDocument {
  _id: "revision";
  /** The last revision that was given out. */
  last: bigint;
  /** Revisions whose changes may not be written yet. The store's revision is below the least of them. */
  pending: bigint[];
}

const indexes: MongoSchema["indexes"] = {
  [authCollections.keys]: [
    { name: "hashes", key: { hashes: 1 }, unique: true },
    { name: "place", key: { accountId: 1, place: 1 }, unique: true },
    { name: "revision", key: { revision: 1 } },
    {
      name: "operation",
      key: { "account.operationId": 1 },
      unique: true,
      partial: { "account.operationId": { $exists: true } },
    },
    {
      name: "made",
      key: { "madeBy.slot": 1 },
      unique: true,
      partial: { "madeBy.slot": { $exists: true } },
    },
    {
      name: "age",
      key: { "account.createdAtMs": 1, accountId: 1 },
      partial: { "account.createdAtMs": { $exists: true } },
    },
    {
      name: "name",
      key: { "account.nameKey": 1, accountId: 1 },
      partial: { "account.nameKey": { $exists: true } },
    },
    {
      name: "closing",
      key: { "account.isClosing": 1, "account.closingAtMs": 1 },
      partial: { "account.isClosing": { $exists: true } },
    },
    { name: "key_age", key: { createdAtMs: 1, _id: 1 } },
  ],
};

/** The schema of auth in MongoDB. The revision begins at 1, because 0 means "from now" in a watch. */
export const authMongoSchema: MongoSchema = {
  component: "auth",
  indexes,
  steps: [
    async (db) => {
      await indexStep(indexes)(db);
      const revisions = db.collection<RevisionDocument>(authCollections.revision);
      const first: RevisionDocument = { _id: "revision", last: 1n, pending: [] };
      await db.attempt(async () => {
        await revisions.insertOne(first).catch((error) => {
          if (!isDuplicate(error)) throw error;
        });
      });
    },
    nameAccounts,
  ],
};

/** Sets `nameKey` of the accounts of earlier versions, so that a search by name finds them. */
async function nameAccounts(db: MongoDatabase): Promise<void> {
  const keys = db.collection<KeyDocument>(authCollections.keys);
  const unnamed = { "account.createdAtMs": { $gte: 0 }, "account.nameKey": { $exists: false } };
  await db.attempt(async () => {
    for await (const { _id, account } of keys.find(unnamed, { projection: { account: 1 } })) {
      const nameKey = nameKeyOf(account?.name ?? "");
      await keys.updateOne({ _id }, { $set: { "account.nameKey": nameKey }, $inc: { v: 1 } });
    }
  });
}

/** The part of a key's document that its key decides. */
type KeyFields = Omit<KeyDocument, "_id" | "v" | "accountId" | "place" | "account">;

/** The fields of a key's document. A value that the key lacks is absent. */
export function keyFields(key: StoredKey): KeyFields {
  const { former, expiresAtMs, revokedAtMs, monthlyUsdMicrosLimit } = key;
  return {
    hashes: [key.secret.sha256, ...(former ? [former.sha256] : [])].map(hashText),
    hint: key.secret.hint,
    ...(former ? { formerEndMs: former.endMs } : {}),
    scopes: [...key.scopes],
    allowedModels: [...key.allowedModels],
    createdAtMs: key.createdAtMs,
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(revokedAtMs === undefined ? {} : { revokedAtMs }),
    ...(monthlyUsdMicrosLimit === undefined ? {} : { monthlyUsdMicrosLimit }),
    requestsPerMinute: key.requestsPerMinute,
    ...laterFields(key),
    revision: key.revision,
  };
}

/** The fields that keys of earlier versions lack. */
function laterFields(key: Key | KeyDocument) {
  const { name, disabled, lastUsedAtMs, updatedAtMs, madeBy, rotations, webhookUrl } = key;
  const { limitReset } = key;
  return {
    ...(name === undefined ? {} : { name }),
    ...(disabled ? { disabled } : {}),
    ...(lastUsedAtMs === undefined ? {} : { lastUsedAtMs }),
    ...(updatedAtMs === undefined ? {} : { updatedAtMs }),
    ...(madeBy ? { madeBy: { ...madeBy } } : {}),
    ...(rotations ? { rotations: [...rotations] } : {}),
    ...(webhookUrl === undefined ? {} : { webhookUrl }),
    ...(limitReset === undefined ? {} : { limitReset: storedLimitReset(limitReset) }),
  };
}

/** The key in a document. */
export function keyOf(doc: KeyDocument): StoredKey {
  const [current = "", former] = doc.hashes;
  const { expiresAtMs, revokedAtMs, monthlyUsdMicrosLimit } = doc;
  return {
    keyId: doc._id,
    accountId: doc.accountId,
    secret: { sha256: Buffer.from(current, "hex"), hint: doc.hint },
    ...(former === undefined
      ? {}
      : { former: { sha256: Buffer.from(former, "hex"), endMs: Number(doc.formerEndMs) } }),
    scopes: doc.scopes as Scope[],
    allowedModels: doc.allowedModels,
    createdAtMs: doc.createdAtMs,
    ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    ...(revokedAtMs === undefined ? {} : { revokedAtMs }),
    ...(monthlyUsdMicrosLimit === undefined ? {} : { monthlyUsdMicrosLimit }),
    requestsPerMinute: doc.requestsPerMinute,
    ...laterFields(doc),
    revision: doc.revision,
  };
}

/** The fields of an account's document that changes of it write. Undefined: absent. */
export function changingFields(
  account: Account,
): Record<Exclude<keyof AccountDocument, KeptFields>, unknown> {
  const { name, firstName, notes, requestsPerMinute, rateIsSet } = account;
  const { suspendedAtMs, closingAtMs, closedAtMs } = account;
  const isClosing = closingAtMs !== undefined && closedAtMs === undefined;
  return {
    ...{ name, nameKey: nameKeyOf(name), firstName, notes, requestsPerMinute, rateIsSet },
    ...{ suspendedAtMs, closingAtMs, closedAtMs, isClosing: isClosing || undefined },
  };
}

/** Fields that no change of the account writes, or that every change does. */
type KeptFields = "createdAtMs" | "operationId" | "firstHash" | "stateRevision";

/** The account in the document of its first key. */
export function accountOf(doc: Pick<KeyDocument, "accountId" | "account">): Account {
  const { accountId, account } = doc;
  if (!account) throw new Error(`the first key of ${accountId} carries no account`);
  const { name, firstName, notes, createdAtMs, requestsPerMinute } = account;
  const { suspendedAtMs, closingAtMs, closedAtMs } = account;
  return {
    ...{ accountId, name, createdAtMs, requestsPerMinute },
    ...(firstName === undefined ? {} : { firstName }),
    ...(notes === undefined ? {} : { notes }),
    ...(account.rateIsSet ? { rateIsSet: true } : {}),
    ...(suspendedAtMs === undefined ? {} : { suspendedAtMs }),
    ...(closingAtMs === undefined ? {} : { closingAtMs }),
    ...(closedAtMs === undefined ? {} : { closedAtMs }),
  };
}
