import type { AnyBulkWriteOperation, Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { looksBehind, maxSlotRounds, usageRowsPage } from "../base/limits.ts";
import { amountOf, refOfName } from "../ledger/store-mongo-docs.ts";
import { usageCollections } from "../ledger/store-mongo-schema.ts";
import { type WalletRef, walletName } from "../ledger/wallet.ts";
import { findLine, type LineIndex, type LineStretch, searchLines } from "./line-search.ts";
import {
  type CursorDocument,
  type LineDocument,
  lineDocument,
  lineOf,
  placeText,
  type RowDocument,
  type SumFields,
  sumsOf,
  type TotalDocument,
} from "./store-mongo-usage-docs.ts";
import {
  bySlot,
  type KeyStep,
  type Line,
  sumNames,
  type UsageCursor,
  type UsageKind,
  type UsageStep,
  uncounted,
} from "./usage.ts";
import type { GroupQuery, KeyTotal, UsageGroup, UsageRow, UsageStore } from "./usage-store.ts";

/**
 * Usage in MongoDB, by single-document writes alone. A line is inserted under its entry's number. A row of the rollup moves on from the
 * entry that it counted last. The cursor follows when all of them are written. Where the process dies in between, the work is done
 * again, and finds the writes that were made.
 */
export function createMongoUsage(db: MongoDatabase): UsageStore {
  const cursors = db.collection<CursorDocument>(usageCollections.cursors);
  const rows = db.collection<RowDocument>(usageCollections.rows);
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
          addOnce(db.collection(usageCollections.rows), rowAdditions(wallet, counted.steps)),
        ),
        db.attempt(() =>
          addOnce(db.collection(usageCollections.totals), totalAdditions(wallet, counted.keySteps)),
        ),
      ]);
      await db.attempt(() => advance(cursors, wallet, counted.cursor));
    },
    behind: (after) => db.attempt(() => readBehind(db, cursors, after)),
    keyTotals: (wallet, keyIds) => db.attempt(() => readKeyTotals(totals, wallet, keyIds)),
    groups: (query) => db.attempt(() => readGroups(rows, query)),
    lines: (query) => searchLines(query, read),
    find: (accountId, keyId, id) => findLine({ accountId, keyId, id }, read),
    rows: (wallet) => readRows(db, rows, wallet),
  };
}

async function readCursor(
  cursors: Collection<CursorDocument>,
  wallet: WalletRef,
): Promise<UsageCursor> {
  const doc = await cursors.findOne({ _id: walletName(wallet) });
  if (!doc) return uncounted;
  return { n: Number(doc.n), balance: amountOf(doc.balance), keysN: Number(doc.keysN ?? 0) };
}

/** Never back. Of several that count the same journal, the one that is ahead has written everything before its cursor. */
async function advance(
  cursors: Collection<CursorDocument>,
  wallet: WalletRef,
  { n, balance, keysN }: UsageCursor,
): Promise<void> {
  const _id = walletName(wallet);
  const further = { $set: { n, balance }, $max: { keysN } };
  try {
    await cursors.updateOne({ _id, n: { $lt: n } }, further, { upsert: true });
  } catch (error) {
    // There is a cursor, and it is not behind.
    if (!isDuplicate(error)) throw error;
    await cursors.updateOne({ _id }, { $max: { keysN } });
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

/** A document that shows up to which of its entries it counts. */
type CountingDocument = Pick<RowDocument | TotalDocument, "_id" | "n">;
type RowBegin = Omit<RowDocument, keyof SumFields | "n">;

/** The additions of entries to one document. Each of them counts there once. */
interface Additions {
  /** The document's fields from its beginning on. */
  begin: { _id: string };
  steps: readonly { n: number; sums: Readonly<Record<string, bigint>> }[];
}

/** Moves each document on by its entries that it does not count yet. Another process may do the same at the same time. */
async function addOnce(
  documents: Collection<CountingDocument>,
  additions: readonly Additions[],
): Promise<void> {
  const left = new Map(additions.map((one) => [one.begin._id, one]));
  for (let round = 0; left.size > 0; round++) {
    if (round === maxSlotRounds) throw new Error("usage does not come to rest");
    const found = await documents.find({ _id: { $in: [...left.keys()] } }).toArray();
    const known = new Map(found.map((doc) => [doc._id, Number(doc.n)]));
    const writes: AnyBulkWriteOperation<CountingDocument>[] = [];
    for (const [_id, { begin, steps }] of left) {
      const n = known.get(_id);
      const some = n === undefined ? steps : steps.filter((step) => step.n > n);
      const last = some.at(-1)?.n;
      if (last === undefined) {
        left.delete(_id);
        continue;
      }
      const sums = sumOf(some);
      writes.push(
        n === undefined
          ? { insertOne: { document: { ...begin, ...sums, n: last } } }
          : { updateOne: { filter: { _id, n }, update: { $set: { n: last }, $inc: sums } } },
      );
    }
    if (writes.length === 0) return;
    try {
      const { insertedCount, matchedCount } = await documents.bulkWrite(writes, { ordered: false });
      if (insertedCount + matchedCount === writes.length) return;
    } catch (error) {
      if (!isDuplicate(error)) throw error;
    }
    // Another process was first with some. Reading each shows which additions are left.
  }
}

function sumOf(steps: Additions["steps"]): Record<string, bigint> {
  const sums: Record<string, bigint> = {};
  for (const step of steps) {
    for (const [name, sum] of Object.entries(step.sums)) sums[name] = (sums[name] ?? 0n) + sum;
  }
  return sums;
}

function rowAdditions(wallet: WalletRef, steps: readonly UsageStep[]): Additions[] {
  const name = walletName(wallet);
  return [...bySlot(steps)].flatMap(([slotName, of]) => {
    const slot = of[0]?.slot;
    if (!slot) return [];
    const _id = `${name}:${slotName}`;
    const begin: RowBegin = { _id, account: wallet.accountId, wallet: name, ...slot };
    return [{ begin, steps: of.map(({ n, sums }) => ({ n, sums: { ...sums } })) }];
  });
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
    found.map(({ _id, n, keysN = 0 }) => [_id, Math.min(Number(n), Number(keysN))]),
  );
  return {
    wallets: wallets
      .filter(({ _id, n }) => Number(n) > (counted.get(_id) ?? 0))
      .map(({ _id }) => refOfName(_id)),
    next: wallets.length < looksBehind ? undefined : wallets.at(-1)?._id,
  };
}

interface GroupedBy {
  start: number;
  wallet: string;
  keyId?: string;
  model?: string;
  kind?: UsageKind;
}

async function readGroups(rows: Collection<RowDocument>, query: GroupQuery): Promise<UsageGroup[]> {
  const { accountId, from, until, width, keyIds, models, kinds, byKey, byModel, byKind } = query;
  const filter: Filter<RowDocument> = {
    account: accountId,
    hour: { $gte: from, $lt: until },
    ...(keyIds ? { keyId: { $in: [...keyIds] } } : {}),
    ...(models ? { model: { $in: [...models] } } : {}),
    ...(kinds ? { kind: { $in: [...kinds] } } : {}),
  };
  const by = {
    start: { $subtract: ["$hour", { $mod: ["$hour", width] }] },
    wallet: "$wallet",
    ...(byKey ? { keyId: "$keyId" } : {}),
    ...(byModel ? { model: "$model" } : {}),
    ...(byKind ? { kind: "$kind" } : {}),
  };
  const sums = Object.fromEntries(sumNames.map((name) => [name, { $sum: `$${name}` }]));
  const groups = await rows
    .aggregate<{ _id: GroupedBy } & SumFields>([
      { $match: filter },
      { $group: { _id: by, ...sums } },
    ])
    .toArray();
  return groups.map(({ _id, ...of }) => ({
    start: Number(_id.start),
    unit: refOfName(_id.wallet).unit,
    keyId: _id.keyId ?? "",
    model: _id.model ?? "",
    kind: _id.kind ?? "",
    sums: sumsOf(of),
  }));
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
  { accountId, index, value, beyond, isRising, limit }: LineStretch,
): Promise<Line[]> {
  const field = fields[index];
  const filter = {
    account: accountId,
    ...(field ? { [field]: value } : {}),
    ...(beyond ? { place: { [isRising ? "$gt" : "$lt"]: placeText(beyond) } } : {}),
  } as Filter<LineDocument>;
  const docs = await collection
    .find(filter)
    .sort({ place: isRising ? 1 : -1 })
    .limit(limit)
    .toArray();
  return docs.map(lineOf);
}

async function* readRows(
  db: MongoDatabase,
  rows: Collection<RowDocument>,
  wallet: WalletRef,
): AsyncIterable<readonly UsageRow[]> {
  let after = "";
  for (;;) {
    const docs = await db.attempt(() =>
      rows
        .find({ wallet: walletName(wallet), _id: { $gt: after } })
        .sort({ wallet: 1, _id: 1 })
        .limit(usageRowsPage)
        .toArray(),
    );
    yield docs.map(({ hour, keyId, kind, model, n, ...doc }) => ({
      slot: { hour: Number(hour), keyId, kind, model },
      sums: sumsOf(doc),
      n: Number(n),
    }));
    if (docs.length < usageRowsPage) return;
    after = docs.at(-1)?._id ?? after;
  }
}
