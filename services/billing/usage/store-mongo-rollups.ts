// Adds to the rollups in MongoDB, so that each entry counts once, and reads sums from them. `store-mongo-usage.ts` has the rest
// of usage.

import type { AnyBulkWriteOperation, Collection, Filter } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import { maxSlotRounds, usageRowsPage } from "../base/limits.ts";
import { type Unit, type WalletRef, walletName } from "../ledger/wallet.ts";
import type { ServedSlot } from "./served.ts";
import { type RowDocument, sumsOf, type TotalDocument } from "./store-mongo-usage-docs.ts";
import { bySlot, type Sums, type UsageKind, type UsageSlot } from "./usage.ts";
import type { ServedQuery } from "./usage-store.ts";

/** A document that shows up to which of its entries it counts. */
type CountingDocument = Pick<RowDocument | TotalDocument, "_id" | "n">;

/** The additions of entries to one document. Each of them counts there once. */
export interface Additions {
  /** The document's fields from its beginning on. */
  begin: { _id: string };
  steps: readonly { n: number; sums: Readonly<Record<string, bigint>> }[];
}

/** Moves each document on by its entries that it does not count yet. Another process may do the same at the same time. */
export async function addOnce(
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

/** The additions of steps to rows of a rollup. */
export function rowAdditions<Slot extends UsageSlot>(
  wallet: WalletRef,
  steps: readonly { n: number; slot: Slot; sums: Readonly<Record<string, bigint>> }[],
  nameOf: (slot: Slot) => string,
): Additions[] {
  const name = walletName(wallet);
  return [...bySlot(steps, nameOf)].flatMap(([slotName, of]) => {
    const slot = of[0]?.slot;
    if (!slot) return [];
    const _id = `${name}:${slotName}`;
    const begin = { _id, account: wallet.accountId, wallet: name, ...slot };
    return [{ begin, steps: of.map(({ n, sums }) => ({ n, sums: { ...sums } })) }];
  });
}

interface GroupedBy {
  start: number;
  unit: Unit;
  keyId?: string;
  model?: string;
  kind?: UsageKind;
  upstream?: string;
}

/** Sums of a rollup in a time. */
export async function readGroups<Name extends string>(
  rows: Collection<RowDocument>,
  names: readonly Name[],
  query: ServedQuery,
) {
  const { accountId, from, until, width, keyIds, models, kinds } = query;
  const filter: Filter<RowDocument> = {
    ...(accountId === undefined ? {} : { account: accountId }),
    hour: { $gte: from, $lt: until },
    ...(keyIds ? { keyId: { $in: [...keyIds] } } : {}),
    ...(models ? { model: { $in: [...models] } } : {}),
    ...(kinds ? { kind: { $in: [...kinds] } } : {}),
  };
  const by = {
    start: { $subtract: ["$hour", { $mod: ["$hour", width] }] },
    // The end of a wallet's name.
    unit: { $arrayElemAt: [{ $split: ["$wallet", "/"] }, -1] },
    ...(query.byKey ? { keyId: "$keyId" } : {}),
    ...(query.byModel ? { model: "$model" } : {}),
    ...(query.byKind ? { kind: "$kind" } : {}),
    ...(query.byUpstream ? { upstream: "$upstream" } : {}),
  };
  const sums = Object.fromEntries(names.map((name) => [name, { $sum: `$${name}` }]));
  const groups = await rows
    .aggregate<{ _id: GroupedBy }>([{ $match: filter }, { $group: { _id: by, ...sums } }])
    .toArray();
  return groups.map(({ _id, ...of }) => ({
    start: Number(_id.start),
    unit: _id.unit,
    keyId: _id.keyId ?? "",
    model: _id.model ?? "",
    kind: _id.kind ?? ("" as const),
    upstream: _id.upstream ?? "",
    sums: sumsOf(names, of),
  }));
}

/** A wallet's rows, by pages. */
export async function* readRows<Name extends string>(
  db: MongoDatabase,
  rows: Collection<RowDocument>,
  names: readonly Name[],
  wallet: WalletRef,
): AsyncIterable<readonly { slot: ServedSlot; sums: Sums<Name>; n: number }[]> {
  let after = "";
  for (;;) {
    const docs = await db.attempt(() =>
      rows
        .find({ wallet: walletName(wallet), _id: { $gt: after } })
        .sort({ wallet: 1, _id: 1 })
        .limit(usageRowsPage)
        .toArray(),
    );
    yield docs.map(({ hour, keyId, kind, model, upstream = "", n, ...doc }) => ({
      slot: { hour: Number(hour), keyId, kind, model, upstream },
      sums: sumsOf(names, doc),
      n: Number(n),
    }));
    if (docs.length < usageRowsPage) return;
    after = docs.at(-1)?._id ?? after;
  }
}
