// Reads lists from the ledger in MongoDB: due holds, open holds, entries. It changes nothing.

import type { Collection, Filter } from "mongodb";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { walletBatchSize } from "../base/limits.ts";
import type { DueQuery, EntryQuery, HoldQuery, Page, WalletHold } from "./store.ts";
import { holdsOf, journalEntryOf, journalId, refOfName, tailEntryOf } from "./store-mongo-docs.ts";
import type { JournalDocument, WalletDocument } from "./store-mongo-schema.ts";
import { type Entry, operationIds, units, type WalletRef, walletName } from "./wallet.ts";

type Wallets = Collection<WalletDocument>;
type Journal = Collection<JournalDocument>;

/**
 * A page of due holds. Wallets are read by their earliest check time, until that is later than the page's last hold. So only wallets
 * with due holds are read.
 */
export async function readDueHolds(wallets: Wallets, query: DueQuery): Promise<Page<WalletHold>> {
  const { now, after, limit } = query;
  const found = createSelection({ after, limit, timeOf: (hold) => hold.checkAt });
  const cursor = wallets
    .find({ dueAt: { $lte: now } }, { projection: { holds: 1, dueAt: 1 } })
    .sort({ dueAt: 1, _id: 1 })
    .batchSize(walletBatchSize);
  for await (const doc of cursor) {
    if (found.isFullBefore(doc.dueAt ?? 0)) break;
    for (const hold of holdsOf(doc.holds)) if (hold.checkAt <= now) found.add(doc._id, hold);
  }
  return found.page();
}

/** A page of open holds by age, made from all wallets that have any. The operator rarely asks for it. */
export async function readHolds(wallets: Wallets, query: HoldQuery): Promise<Page<WalletHold>> {
  const { accountId, keyId, after, limit } = query;
  const found = createSelection({ after, limit, timeOf: (hold) => hold.openedAt });
  const filter: Filter<WalletDocument> =
    accountId === undefined ? { dueAt: { $gte: 0 } } : { _id: { $in: walletsOf(accountId) } };
  const cursor = wallets.find(filter, { projection: { holds: 1 } }).batchSize(walletBatchSize);
  for await (const doc of cursor) {
    for (const hold of holdsOf(doc.holds)) {
      if (keyId === undefined || hold.keyId === keyId) found.add(doc._id, hold);
    }
  }
  return found.page();
}

/**
 * When the oldest open hold was opened. The server searches the wallets that have holds, and answers one number. A field and an index
 * for it would be written with every hold, and read only a few times a minute.
 */
export async function readOldestHold(wallets: Wallets): Promise<number | undefined> {
  const [oldest] = await wallets
    .aggregate([
      { $match: { dueAt: { $gte: 0 } } },
      { $project: { holds: { $objectToArray: "$holds" } } },
      { $unwind: "$holds" },
      { $group: { _id: null, openedAt: { $min: "$holds.v.openedAt" } } },
    ])
    .toArray();
  return oldest && Number(oldest.openedAt);
}

/** The names of an account's wallets, in their order. */
export function walletsOf(accountId: string): string[] {
  return units.map((unit) => walletName({ accountId, unit })).sort();
}

/** Entries of a wallet, newest first: from its tail, then, **after** that was read, from its journal. */
export async function readEntries(
  wallets: Wallets,
  journal: Journal,
  ref: WalletRef,
  { holdId, below = Number.MAX_SAFE_INTEGER, limit }: EntryQuery,
): Promise<Entry[]> {
  const name = walletName(ref);
  const doc = await wallets.findOne({ _id: name }, { projection: { tail: 1 } });
  const recent = (doc?.tail ?? [])
    .map(tailEntryOf)
    .filter((entry) => entry.n < below && (holdId === undefined || entry.holdId === holdId));
  const older =
    holdId === undefined
      ? await journal
          .find({ wallet: name, n: { $lt: below } })
          .sort({ n: -1 })
          .limit(limit)
          .toArray()
      : await entriesOfHold(journal, name, holdId);
  const byNumber = new Map(recent.map((entry) => [entry.n, entry]));
  for (const entry of older.map(journalEntryOf)) {
    if (entry.n < below) byNumber.set(entry.n, entry);
  }
  return [...byNumber.values()].sort((a, b) => b.n - a.n).slice(0, limit);
}

/**
 * A hold's entries, except those of its charge and its refund, share the beginning of their ids. So the index on ids finds them. All
 * are read, because they are few.
 */
async function entriesOfHold(
  journal: Journal,
  wallet: string,
  holdId: string,
): Promise<JournalDocument[]> {
  const prefix = journalId(wallet, holdId);
  const others = [operationIds.charge(holdId), operationIds.refund(holdId)];
  const [rest, more] = await Promise.all([
    journal.find({ _id: { $gt: `${prefix}:`, $lt: `${prefix};` } }).toArray(),
    journal.find({ _id: { $in: others.map((id) => journalId(wallet, id)) } }).toArray(),
  ]);
  return [...rest, ...more];
}

interface Placed {
  wallet: string;
  hold: ReturnType<typeof holdsOf>[number];
  time: number;
}

/** The first holds after a place, in the order of a time, then wallet and hold id, from any number of holds. */
function createSelection(options: {
  after: string | undefined;
  limit: number;
  timeOf: (hold: Placed["hold"]) => number;
}) {
  const { limit, timeOf } = options;
  const after = options.after === undefined ? undefined : parseCursor(options.after);
  const wanted = limit + 1;
  let kept: Placed[] = [];
  const cut = () => {
    kept = kept.sort(compare).slice(0, wanted);
  };
  return {
    add(wallet: string, hold: Placed["hold"]) {
      const one = { wallet, hold, time: timeOf(hold) };
      if (after && compare(one, after) <= 0) return;
      kept.push(one);
      if (kept.length >= 2 * wanted) cut();
    },
    /** Does no hold from `time` on belong to the page? */
    isFullBefore(time: number) {
      if (kept.length < wanted) return false;
      cut();
      return (kept.at(-1)?.time ?? time) < time;
    },
    page(): Page<WalletHold> {
      cut();
      const page = kept.slice(0, limit);
      const last = kept.length > limit ? page.at(-1) : undefined;
      return {
        items: page.map(({ wallet, hold }) => ({ ...hold, wallet: refOfName(wallet) })),
        next: last && `${last.time}.${last.wallet}.${last.hold.holdId}`,
      };
    },
  };
}

type Place = Pick<Placed, "time" | "wallet"> & { hold: { holdId: string } };

function compare(a: Place, b: Place): number {
  if (a.time !== b.time) return a.time - b.time;
  if (a.wallet !== b.wallet) return a.wallet < b.wallet ? -1 : 1;
  if (a.hold.holdId === b.hold.holdId) return 0;
  return a.hold.holdId < b.hold.holdId ? -1 : 1;
}

const cursorPattern =
  /^(\d{1,15})\.([A-Za-z0-9_-]{1,64}\/(?:usd_micros|credits))\.([a-z0-9_]{8,40})$/;

function parseCursor(cursor: string): Place {
  const [, time, wallet, holdId] = cursorPattern.exec(cursor) ?? [];
  if (time === undefined || wallet === undefined || holdId === undefined) {
    refuse(ErrorReason.INVALID_ARGUMENT, { metadata: { field: "page_token" } });
  }
  return { time: Number(time), wallet, hold: { holdId } };
}
