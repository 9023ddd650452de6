// The store of usage in MongoDB: cursors, lines, key totals. `store-mongo-rollups.ts` keeps its rollups.

import type { Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { looksBehind } from "../base/limits.ts";
import { amountOf, refOfName } from "../ledger/store-mongo-docs.ts";
import { usageCollections } from "../ledger/store-mongo-schema.ts";
import { type WalletRef, walletName } from "../ledger/wallet.ts";
import {
  findLine,
  findLines,
  type LineIndex,
  type LineStretch,
  searchLines,
} from "./line-search.ts";
import { servedName, servedNames } from "./served.ts";
import {
  type Additions,
  addOnce,
  readGroups,
  readRows,
  rowAdditions,
} from "./store-mongo-rollups.ts";
import {
  type CursorDocument,
  type LineDocument,
  lineDocument,
  lineOf,
  placeText,
  type RowDocument,
  type TotalDocument,
} from "./store-mongo-usage-docs.ts";
import {
  type KeyStep,
  type Line,
  slotName,
  sumNames,
  type UsageCursor,
  uncounted,
} from "./usage.ts";
import type { KeyTotal, LinePlace, UsageStore } from "./usage-store.ts";

/**
 * Usage in MongoDB, by single-document writes alone. A line is inserted under its entry's number. A row of the rollup moves on from the
 * entry that it counted last. The cursor follows when all of them are written. Where the process dies in between, the work is done
 * again, and finds the writes that were made.
 */
export function createMongoUsage(db: MongoDatabase): UsageStore {
  const cursors = db.collection<CursorDocument>(usageCollections.cursors);
  const rows = db.collection<RowDocument>(usageCollections.rows);
  const served = db.collection<RowDocument>(usageCollections.served);
  const lines = db.collection<LineDocument>(usageCollections.lines);
  const totals = db.collection<TotalDocument>(usageCollections.totals);
  const read = (stretch: LineStretch) => db.attempt(() => readLines(lines, stretch));
  return {
    // Made with the ledger's other collections.
    open: async () => {},
    cursor: (wallet) => db.attempt(() => readCursor(cursors, wallet)),
    async count(wallet, _before, counted) {
      await Promise.all([
        db.attempt(() => insertLines(lines, counted.lines)),
        db.attempt(() =>
          addOnce(
            db.collection(usageCollections.rows),
            rowAdditions(wallet, counted.steps, slotName),
          ),
        ),
        db.attempt(() =>
          addOnce(
            db.collection(usageCollections.served),
            rowAdditions(wallet, counted.servedSteps, servedName),
          ),
        ),
        db.attempt(() =>
          addOnce(db.collection(usageCollections.totals), totalAdditions(wallet, counted.keySteps)),
        ),
      ]);
      await db.attempt(() => advance(cursors, wallet, counted.cursor));
    },
    behind: (after) => db.attempt(() => readBehind(db, cursors, after)),
    keyTotals: (wallet, keyIds) => db.attempt(() => readKeyTotals(totals, wallet, keyIds)),
    groups: (query) =>
      db.attempt(() => readGroups(rows, sumNames, { ...query, byUpstream: false })),
    served: (query) => db.attempt(() => readGroups(served, servedNames, query)),
    lines: (query) => searchLines(query, read),
    find: (accountId, keyId, id) => findLine({ accountId, keyId, id }, read),
    findAll: (id) => findLines(id, read),
    rows: (wallet) => readRows(db, rows, sumNames, wallet),
    servedRows: (wallet) => readRows(db, served, servedNames, wallet),
  };
}

async function readCursor(
  cursors: Collection<CursorDocument>,
  wallet: WalletRef,
): Promise<UsageCursor> {
  const doc = await cursors.findOne({ _id: walletName(wallet) });
  if (!doc) return uncounted;
  const { n, balance, keysN = 0, servedN = 0 } = doc;
  const numbers = { n: Number(n), keysN: Number(keysN), servedN: Number(servedN) };
  return { ...numbers, balance: amountOf(balance) };
}

/** Never back. Of several that count the same journal, the one that is ahead has written everything before its cursor. */
async function advance(
  cursors: Collection<CursorDocument>,
  wallet: WalletRef,
  { n, balance, keysN, servedN }: UsageCursor,
): Promise<void> {
  const _id = walletName(wallet);
  const further = { $set: { n, balance }, $max: { keysN, servedN } };
  try {
    await cursors.updateOne({ _id, n: { $lt: n } }, further, { upsert: true });
  } catch (error) {
    // There is a cursor, and it is not behind.
    if (!isDuplicate(error)) throw error;
    await cursors.updateOne({ _id }, { $max: { keysN, servedN } });
  }
}

async function insertLines(
  collection: Collection<LineDocument>,
  lines: readonly Line[],
): Promise<void> {
  if (lines.length === 0) return;
  try {
    await collection.insertMany(lines.map(lineDocument), { ordered: false });
  } catch (error) {
    // Those were written before.
    if (!isDuplicate(error)) throw error;
  }
}

function totalAdditions(wallet: WalletRef, steps: readonly KeyStep[]): Additions[] {
  return [...Map.groupBy(steps, ({ keyId }) => keyId)].map(([keyId, of]) => ({
    begin: { _id: totalId(wallet, keyId) },
    steps: of.map(({ n, spent }) => ({ n, sums: { spent } })),
  }));
}

function totalId(wallet: WalletRef, keyId: string): string {
  return `${walletName(wallet)}:${keyId}`;
}

async function readKeyTotals(
  totals: Collection<TotalDocument>,
  wallet: WalletRef,
  keyIds: readonly string[] | undefined,
): Promise<KeyTotal[]> {
  const _id = keyIds
    ? { $in: keyIds.map((keyId) => totalId(wallet, keyId)) }
    : // All that begin with the wallet's name. ";" comes after ":".
      { $gt: `${walletName(wallet)}:`, $lt: `${walletName(wallet)};` };
  const docs = await totals.find({ _id }).toArray();
  return docs.map((doc) => ({
    keyId: doc._id.slice(totalId(wallet, "").length),
    spent: amountOf(doc.spent),
    n: Number(doc.n),
  }));
}

async function readBehind(
  db: MongoDatabase,
  cursors: Collection<CursorDocument>,
  after: string | undefined,
): Promise<{ wallets: WalletRef[]; next: string | undefined }> {
  const wallets = await db
    .collection<{ _id: string; n: number }>("ledger_wallet")
    .find(after === undefined ? {} : { _id: { $gt: after } }, { projection: { n: 1 } })
    .sort({ _id: 1 })
    .limit(looksBehind)
    .toArray();
  const found = await cursors.find({ _id: { $in: wallets.map(({ _id }) => _id) } }).toArray();
  const counted = new Map(
    found.map(({ _id, n, keysN = 0, servedN = 0 }) => [
      _id,
      Math.min(Number(n), Number(keysN), Number(servedN)),
    ]),
  );
  return {
    wallets: wallets
      .filter(({ _id, n }) => Number(n) > (counted.get(_id) ?? 0))
      .map(({ _id }) => refOfName(_id)),
    next: wallets.length < looksBehind ? undefined : wallets.at(-1)?._id,
  };
}

/** The field of each index. */
const fields: Readonly<Record<LineIndex, keyof LineDocument | undefined>> = {
  key: "keyId",
  model: "model",
  status: "unusualStatus",
  kind: "unusualKind",
  public: "publicId",
  request: "requestId",
  all: undefined,
};

async function readLines(
  collection: Collection<LineDocument>,
  stretch: LineStretch,
): Promise<Line[]> {
  const { accountId, index, value, isRising, limit } = stretch;
  const field = fields[index];
  const filter = {
    ...(accountId === undefined ? {} : { account: accountId }),
    ...(field ? { [field]: value } : {}),
    ...betweenOf(stretch),
  } as Filter<LineDocument>;
  const way = isRising ? 1 : -1;
  const found = collection.find(filter).limit(limit);
  // By an id without an account they come in no order.
  if (accountId !== undefined) found.sort({ place: way });
  else if (index !== "public" && index !== "request") found.sort({ place: way, account: way });
  return (await found.toArray()).map(lineOf);
}

/** The condition on lines between two places. Where there are none, it keeps a query of all lines to the index. */
function betweenOf({ accountId, index, above, below }: LineStretch): Filter<LineDocument> {
  if (accountId !== undefined) {
    const place = {
      ...(above && { $gt: placeText(above) }),
      ...(below && { $lt: placeText(below) }),
    };
    return above || below ? { place } : {};
  }
  if (!above && !below) return index === "all" ? { place: { $gt: "" } } : {};
  // Several accounts may have lines of one place.
  const beyond = (way: "$gt" | "$lt", of: LinePlace | undefined) =>
    of
      ? [{ $or: [{ place: { [way]: placeText(of) } }, { account: { [way]: of.accountId ?? "" } }] }]
      : [];
  return {
    place: {
      ...(above && { $gte: placeText(above) }),
      ...(below && { $lte: placeText(below) }),
    },
    $and: [...beyond("$gt", above), ...beyond("$lt", below)],
  };
}
