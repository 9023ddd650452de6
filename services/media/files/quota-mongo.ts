// Counts quotas in MongoDB, by single-document writes. `quota-rules.ts` decides each change.

import type { Collection } from "mongodb";
import { batchedByName } from "#kit/base/batching.ts";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import { conflictPauseMs, maxConflicts, maxQuotaOperations, tailCopiedAt } from "./limits.ts";
import type { QuotaStore, QuotaUsage } from "./quota.ts";
import {
  type ChargeDocument,
  chargeName,
  quotaCollections,
  type WalletDocument,
} from "./quota-mongo-wallet.ts";
import {
  type ChargeEntry,
  draftOf,
  type QuotaDraft,
  type QuotaOperation,
  type QuotaOutcome,
  transitionsBy,
} from "./quota-rules.ts";

/** The collections of the quota. */
interface Collections {
  wallets: Collection<WalletDocument>;
  charges: Collection<ChargeDocument>;
}

/**
 * The quota in MongoDB. A transition is one compare-and-set of an account's wallet, which carries its last changes until they are
 * copied to the charges' own documents. A change that was sent without an answer is found there by its charge. One that arrives late
 * finds another version.
 */
export function createMongoQuota(db: MongoDatabase): QuotaStore {
  const { wallets, charges }: Collections = {
    wallets: db.collection(quotaCollections.wallets),
    charges: db.collection(quotaCollections.charges),
  };
  const batches = batchedByName<QuotaOperation, QuotaOutcome>(
    (accountId, operations) =>
      db.attempt(async () => {
        for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
          const outcomes = await tryOnce({ wallets, charges }, accountId, operations);
          if (outcomes) return outcomes;
          await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
        }
        throw awayRefusal(new Error(`a quota's transition was overtaken ${maxConflicts} times`));
      }),
    { most: maxQuotaOperations },
  );
  return {
    ...transitionsBy(batches.add),
    usage: (accountId) =>
      db.attempt(async () => {
        const doc = await wallets.findOne({ _id: accountId }, { projection: { tail: 0 } });
        return usageOf(doc ?? emptyWallet(accountId));
      }),
    async forget(before, limit) {
      const over = { releasedAt: { $lt: before } };
      const carriers = await db.attempt(() => wallets.find(over).limit(limit).toArray());
      for (const wallet of carriers)
        await db.attempt(() => emptyTail({ wallets, charges }, wallet));
      return db.attempt(async () => {
        const docs = await charges
          .find(over, { projection: { _id: 1 } })
          .limit(limit)
          .toArray();
        if (docs.length === 0) return 0;
        const ids = docs.map(({ _id }) => _id);
        await charges.deleteMany({ _id: { $in: ids }, ...over });
        // Includes those that another process deleted meanwhile. A full batch means that there may be more.
        return ids.length;
      });
    },
  };
}

/** Undefined where another process was first. */
async function tryOnce(
  { wallets, charges }: Collections,
  accountId: string,
  operations: readonly QuotaOperation[],
): Promise<QuotaOutcome[] | undefined> {
  const wallet = (await wallets.findOne({ _id: accountId })) ?? emptyWallet(accountId);
  const known = await knownCharges(charges, wallet, operations);
  const draft = draftOf({ n: wallet.n, ...usageOf(wallet) }, known, operations);
  if (draft.entries.length === 0) return draft.outcomes;
  const isLong = wallet.tail.length >= tailCopiedAt;
  if (isLong) await copy(charges, wallet);
  const isWritten = await write(wallets, wallet, draft, isLong ? [] : wallet.tail);
  return isWritten ? draft.outcomes : undefined;
}

/**
 * The charges of operations. Their documents are read **after** the wallet. The other order would miss a change that leaves a tail in
 * between.
 */
async function knownCharges(
  charges: Collection<ChargeDocument>,
  { _id: accountId, tail }: WalletDocument,
  operations: readonly QuotaOperation[],
): Promise<Map<string, ChargeEntry>> {
  const known = new Map<string, ChargeEntry>();
  const wanted = new Set(operations.map(({ chargeId }) => chargeId));
  for (const entry of tail) if (wanted.has(entry.chargeId)) known.set(entry.chargeId, entry);
  const names = new Map(
    [...wanted].flatMap((id) => (known.has(id) ? [] : [[chargeName(accountId, id), id]])),
  );
  if (names.size === 0) return known;
  for await (const { _id, ...charge } of charges.find({ _id: { $in: [...names.keys()] } })) {
    const chargeId = names.get(_id);
    if (chargeId !== undefined) known.set(chargeId, { chargeId, ...charge });
  }
  return known;
}

/**
 * Copies a tail to the charges' documents. May be repeated, and may come late: newer values there stay. A document is inserted first,
 * then updated. Of two upserts that make a document at once, the older one could stay.
 */
async function copy(charges: Collection<ChargeDocument>, wallet: WalletDocument): Promise<void> {
  const last = new Map(wallet.tail.map((entry) => [entry.chargeId, entry]));
  const docs = [...last.values()].map(
    ({ chargeId, ...rest }): ChargeDocument => ({ _id: chargeName(wallet._id, chargeId), ...rest }),
  );
  try {
    await charges.insertMany(docs, { ordered: false });
    return;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  const forward = docs.map(({ _id, n, ...rest }) => ({
    updateOne: { filter: { _id, n: { $lt: n } }, update: { $set: { n, ...rest } } },
  }));
  await charges.bulkWrite(forward, { ordered: false });
}

/** False where the wallet has changed since it was read. Then nothing was written. */
async function write(
  wallets: Collection<WalletDocument>,
  wallet: WalletDocument,
  { sums, entries }: QuotaDraft,
  carried: readonly ChargeEntry[],
): Promise<boolean> {
  const n = wallet.n + entries.length;
  const doc = walletDocument(wallet._id, n, sums, [...carried, ...entries]);
  if (wallet.n > 0) {
    const { matchedCount } = await wallets.replaceOne({ _id: wallet._id, n: wallet.n }, doc);
    return matchedCount === 1;
  }
  try {
    await wallets.insertOne(doc);
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

/** Does nothing where the wallet has changed since it was read. The next look finds it again. */
async function emptyTail({ wallets, charges }: Collections, wallet: WalletDocument): Promise<void> {
  await copy(charges, wallet);
  const doc = walletDocument(wallet._id, wallet.n, usageOf(wallet), []);
  await wallets.replaceOne({ _id: wallet._id, n: wallet.n }, doc);
}

function emptyWallet(accountId: string): WalletDocument {
  return { _id: accountId, n: 0, usedBytes: 0, reservedBytes: 0, tail: [] };
}

function usageOf({
  usedBytes,
  reservedBytes,
  keptBytes = 0,
}: Omit<WalletDocument, "_id" | "n" | "tail">): QuotaUsage {
  return { usedBytes, reservedBytes, keptBytes };
}

function walletDocument(
  accountId: string,
  n: number,
  sums: QuotaUsage,
  tail: ChargeEntry[],
): WalletDocument {
  const released = tail.flatMap(({ releasedAt }) => (releasedAt === undefined ? [] : [releasedAt]));
  return {
    _id: accountId,
    n,
    ...sums,
    tail,
    ...(released.length > 0 ? { releasedAt: Math.min(...released) } : {}),
  };
}
