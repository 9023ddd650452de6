import { isDuplicate } from "#kit/mongo/errors.ts";
import { indexStep, type MongoSchema } from "#kit/mongo/migrate.ts";

/** Collections of auth. */
export const authCollections = { keys: "auth_key", revision: "auth_revision" } as const;

/**
 * A key; the first one of an account carries the account, so that both come to be in one write. Keys are never deleted,
 * so an account's keys have the places 1 to 1,000, each once.
 */
export interface KeyDocument {
  /** The key id. */
  _id: string;
  /** Rises with every change: what compare-and-set compares. */
  v: number;
  accountId: string;
  place: number;
  /** SHA-256 of its secret, and of the one before where there is a grace; lower-case hexadecimal. Nobody else has them. */
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
  revision: bigint;
  /** At place 1. */
  account?: AccountDocument;
}

export interface AccountDocument {
  name: string;
  createdAtMs: number;
  requestsPerMinute: number;
  /** Of the call that made it. */
  operationId?: string;
  /** Hash of the secret that the key had at first: a repeat of that call must bring the same. */
  firstHash: string;
}

/** The one document that is polled. */
export interface RevisionDocument {
  _id: "revision";
  /** The last revision that was given away. */
  last: bigint;
  /** Revisions whose changes may not have been written yet: what is below the least of them is told. */
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
      name: "age",
      key: { "account.createdAtMs": 1, accountId: 1 },
      partial: { "account.createdAtMs": { $exists: true } },
    },
  ],
};

/** What auth keeps in MongoDB. The revision begins at 1: 0 stands for "from now" in a watch. */
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
  ],
};
