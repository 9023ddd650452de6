// Reads whole wallets from MongoDB for an audit, those included that have lost their document or their journal.

import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { auditPageSize } from "../base/limits.ts";
import type { WalletSnapshot } from "./store.ts";
import {
  holdsOf,
  journalEntryOf,
  keysOf,
  refOfName,
  tailEntryOf,
  walletOf,
} from "./store-mongo-docs.ts";
import { walletsOf } from "./store-mongo-pages.ts";
import {
  type JournalDocument,
  ledgerCollections,
  type WalletDocument,
} from "./store-mongo-schema.ts";
import type { Entry } from "./wallet.ts";

/** Every wallet (of one account, where given), and the rest of wallets that are gone, by name. */
export async function* readSnapshots(
  db: MongoDatabase,
  accountId: string | undefined,
): AsyncIterable<WalletSnapshot> {
  if (accountId !== undefined) {
    for (const name of walletsOf(accountId)) {
      const found = await snapshot(db, name);
      if (found) yield found;
    }
    return;
  }
  for (let name = await nextName(db, ""); name !== undefined; name = await nextName(db, name)) {
    const found = await snapshot(db, name);
    if (found) yield found;
  }
}

/** The next name in either collection. This takes two steps along two indexes. */
function nextName(db: MongoDatabase, after: string): Promise<string | undefined> {
  const { wallets, journal } = collections(db);
  return db.attempt(async () => {
    const [wallet, entry] = await Promise.all([
      wallets.findOne({ _id: { $gt: after } }, { sort: { _id: 1 }, projection: { _id: 1 } }),
      journal.findOne(
        { wallet: { $gt: after } },
        { sort: { wallet: 1, n: 1 }, projection: { wallet: 1 } },
      ),
    ]);
    return [wallet?._id, entry?.wallet].filter((name) => name !== undefined).sort()[0];
  });
}

/**
 * A wallet at one moment, by its document. The end of the journal is read **before** it. So an entry above the wallet's own number is
 * really one too many, and not one that came a moment later.
 */
function snapshot(db: MongoDatabase, name: string): Promise<WalletSnapshot | undefined> {
  const { wallets, journal } = collections(db);
  return db.attempt(async () => {
    const end = await journal.findOne(
      { wallet: name },
      { sort: { wallet: -1, n: -1 }, projection: { n: 1 } },
    );
    const doc = await wallets.findOne({ _id: name });
    if (!doc && !end) return undefined;
    const tail = (doc?.tail ?? []).map(tailEntryOf);
    const numbers = [Number(end?.n ?? 0), Number(doc?.n ?? 0), ...tail.map(({ n }) => n)];
    const lastEntry = Math.max(...numbers);
    return {
      ref: refOfName(name),
      wallet: doc ? walletOf(doc) : undefined,
      holds: holdsOf(doc?.holds),
      keys: keysOf(doc?.keys),
      lastEntry,
      entries: () => entriesOf(db, name, tail, lastEntry),
      async entry(number) {
        const recent = tail.find(({ n }) => n === number);
        if (recent) return recent;
        const found = await db.attempt(() => journal.findOne({ wallet: name, n: number }));
        return found ? journalEntryOf(found) : undefined;
      },
    };
  });
}

/** Journal and tail in the order of their numbers. An entry in both, which is normal, comes once. */
async function* entriesOf(
  db: MongoDatabase,
  name: string,
  tail: readonly Entry[],
  lastEntry: number,
): AsyncIterable<readonly Entry[]> {
  const { journal } = collections(db);
  const waiting = [...tail].sort((a, b) => a.n - b.n);
  for (let after = Number.MIN_SAFE_INTEGER; ; ) {
    const page = await db.attempt(() =>
      journal
        .find({ wallet: name, n: { $gt: after, $lte: lastEntry } })
        .sort({ wallet: 1, n: 1 })
        .limit(auditPageSize)
        .toArray(),
    );
    const entries = page.map(journalEntryOf);
    const isLast = entries.length < auditPageSize;
    after = entries.at(-1)?.n ?? after;
    const upTo = isLast ? waiting.length : waiting.findIndex(({ n }) => n > after);
    const merged = merge(entries, waiting.splice(0, upTo < 0 ? waiting.length : upTo));
    if (merged.length > 0) yield merged;
    if (isLast) return;
  }
}

function merge(journal: readonly Entry[], tail: readonly Entry[]): Entry[] {
  const copied = new Set(journal.map(contentOf));
  const rest = tail.filter((entry) => !copied.has(contentOf(entry)));
  return [...journal, ...rest].sort((a, b) => a.n - b.n);
}

function contentOf(entry: Entry): string {
  return JSON.stringify(Object.values(entry), (_, value) =>
    typeof value === "bigint" ? `${value}` : value,
  );
}

function collections(db: MongoDatabase) {
  return {
    wallets: db.collection<WalletDocument>(ledgerCollections.wallets),
    journal: db.collection<JournalDocument>(ledgerCollections.journal),
  };
}
