import { setImmediate } from "node:timers/promises";
import type { MongoDatabase } from "#kit/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/mongo/errors.ts";
import { migrate } from "#kit/mongo/migrate.ts";
import { createBatches, type TimedOperation } from "./batches.ts";
import { type Fold, fold } from "./ledger.ts";
import {
  conflictPauseMs,
  maxConflicts,
  maxTail,
  maxTransitionOperations,
  tailFlushedAt,
} from "./limits.ts";
import type { Outcome } from "./operations.ts";
import type { LedgerStore } from "./store.ts";
import { createImages } from "./store-mongo-cache.ts";
import { walletOf } from "./store-mongo-docs.ts";
import {
  advanceImage,
  type Draft,
  draftOf,
  firstDocument,
  type Image,
  readImage,
  writeDraft,
} from "./store-mongo-image.ts";
import { createFlusher, readRecorded } from "./store-mongo-journal.ts";
import { readDueHolds, readEntries, readHolds } from "./store-mongo-pages.ts";
import {
  type JournalDocument,
  ledgerCollections,
  ledgerMongoSchema,
  type WalletDocument,
} from "./store-mongo-schema.ts";
import { readSnapshots } from "./store-mongo-snapshots.ts";
import { emptyWallet, type WalletRef, walletName } from "./wallet.ts";

/** What a ledger may be given beside its database. */
export interface MongoLedgerOptions {
  /** The transition function; tests seed faults there. */
  rules?: Fold;
  /** Is told of each transition that another process overtook. */
  onConflict?: (wallet: WalletRef) => void;
}

/**
 * The ledger in MongoDB (MONEY section 1): a batch of one wallet is one compare-and-set of one document, which carries
 * its last entries until they are in the journal. A batch whose wallet has changed, or whose answer was lost, is folded
 * anew on what is there now; what it did already is found by its operation ids.
 */
export function createMongoLedger(
  db: MongoDatabase,
  { rules = fold, onConflict = () => undefined }: MongoLedgerOptions = {},
): LedgerStore {
  const wallets = db.collection<WalletDocument>(ledgerCollections.wallets);
  const journal = db.collection<JournalDocument>(ledgerCollections.journal);
  const images = createImages();
  const flusher = createFlusher(db);

  const batches = createBatches(async (ref, take) => {
    const operations = take();
    const outcomes: Outcome[] = [];
    for (let from = 0; from < operations.length; from += maxTransitionOperations) {
      const some = operations.slice(from, from + maxTransitionOperations);
      outcomes.push(...(await transition(ref, some)));
    }
    return outcomes;
  });

  async function transition(
    ref: WalletRef,
    operations: readonly TimedOperation[],
  ): Promise<Outcome[]> {
    const name = walletName(ref);
    const own: OwnEntries = new Map();
    return db.attempt(async (unsure) => {
      if (unsure) images.drop(name);
      for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
        const outcomes = await tryOnce(ref, operations, own);
        if (outcomes) return outcomes;
        await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
      }
      throw awayRefusal(new Error(`overtaken ${maxConflicts} times`));
    });
  }

  /** Undefined where the wallet was not, or no longer, what it was taken for. */
  async function tryOnce(
    ref: WalletRef,
    operations: readonly TimedOperation[],
    own: OwnEntries,
  ): Promise<Outcome[] | undefined> {
    const name = walletName(ref);
    const cached = images.get(name);
    const image = cached ?? (await readImage(wallets, ref));
    if (image.tail.length + operations.length > maxTail) await flusher.flush(image);
    const asked = operations.map(({ operation }) => operation);
    const recorded = await readRecorded(journal, image, asked);
    const draft = draftOf(image, recorded);
    const outcomes = foldAll(rules, draft, operations, own);
    if (draft.entries.length === 0) {
      // Nothing to compare and set: a refusal must not rest on what was true some time ago.
      const isNow = !cached || (await wallets.findOne({ _id: name, v: image.v }, idOnly)) !== null;
      if (!isNow) images.drop(name);
      else if (image.v > 0) images.put(image);
      return isNow ? outcomes : undefined;
    }
    // Whatever becomes of the write, the next one must not build on the image as it was.
    images.drop(name);
    for (const entry of draft.entries) own.set(entry.operationId, entry.hash);
    if (!(await write(image, draft))) {
      own.clear();
      images.distrust(name);
      onConflict(ref);
      return undefined;
    }
    advanceImage(image, draft);
    images.put(image);
    // What fails here stays in the tail; where room is short it is waited for, and then it is heard.
    if (image.tail.length >= tailFlushedAt) void flusher.flush(image).catch(() => undefined);
    return outcomes;
  }

  async function write(image: Image, draft: Draft): Promise<boolean> {
    if (image.v > 0) return writeDraft(wallets, image, draft);
    try {
      await wallets.insertOne(firstDocument(image, draft));
      return true;
    } catch (error) {
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  return {
    open: () => migrate(db, [ledgerMongoSchema]),
    apply: (wallet, operations, now) => batches.add(wallet, operations, now),
    wallet: (ref) =>
      db.attempt(async () => {
        const doc = await wallets.findOne({ _id: walletName(ref) }, figuresOnly);
        return doc ? walletOf(doc) : emptyWallet(ref);
      }),
    dueHolds: (query) => db.attempt(() => readDueHolds(wallets, query)),
    holds: (query) => db.attempt(() => readHolds(wallets, query)),
    entries: (wallet, query) => db.attempt(() => readEntries(wallets, journal, wallet, query)),
    snapshots: (accountId) => readSnapshots(db, accountId),
  };
}

const idOnly = { projection: { _id: 1 } } as const;
const figuresOnly = { projection: { keys: 0, holds: 0, tail: 0 } } as const;

/** Hashes of the entries that a transition tried to write and never heard of, by operation id. */
type OwnEntries = Map<string, string>;

function foldAll(
  rules: Fold,
  draft: Draft,
  operations: readonly TimedOperation[],
  own: OwnEntries,
): Outcome[] {
  return operations.map(({ operation, now }) => {
    const { outcome, change } = rules(draft.view, operation, now);
    if (change) draft.add(change);
    return outcome;
  });
}
