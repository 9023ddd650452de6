// Finds recorded operations in MongoDB, and moves entries from a wallet's document to the journal. Entries begin in the document,
// so that one write changes money and records it.

import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { isDuplicate } from "#kit/store/mongo/errors.ts";
import type { Operation } from "./operations.ts";
import type { SharedCommands } from "./store-mongo-commands.ts";
import { journalDocument, journalEntryOf, journalId } from "./store-mongo-docs.ts";
import {
  type JournalDocument,
  ledgerCollections,
  type WalletDocument,
} from "./store-mongo-schema.ts";
import type { Image } from "./store-mongo-wallets.ts";
import { takeBackSlots } from "./take-back.ts";
import { type Entry, operationIds } from "./wallet.ts";

/**
 * Looks up the entries that a batch needs, first in the image's tail, then, **after** the wallet was read, in the journal. The other
 * order would miss an entry that moves from the one to the other in between.
 */
export async function readRecorded(
  journal: Pick<SharedCommands, "journaled">,
  image: Image,
  operations: readonly Operation[],
): Promise<Map<string, Entry | undefined>> {
  const recorded = new Map<string, Entry | undefined>();
  const lookedUp = new Set<string>();
  for (const operation of operations) {
    for (const id of askedFor(operation)) {
      recorded.set(id, undefined);
      if (!isEndOfOpen(operation, image)) lookedUp.add(id);
    }
  }
  for (const entry of image.tail) {
    if (recorded.has(entry.operationId)) recorded.set(entry.operationId, entry);
  }
  const missing = [...lookedUp].filter((id) => !recorded.get(id));
  if (missing.length === 0) return recorded;
  const ids = missing.map((id) => journalId(image.name, id));
  for (const doc of await journal.journaled(ids)) {
    const entry = journalEntryOf(doc);
    recorded.set(entry.operationId, entry);
  }
  return recorded;
}

/** Operation ids whose entries the fold may ask for. */
function askedFor(operation: Operation): string[] {
  switch (operation.kind) {
    case "grant":
      return [operationIds.grant(operation.grantId)];
    case "reserve":
      return [operationIds.open(operation.holdId), ...endsOf(operation.holdId)];
    case "settle":
    case "release":
    case "draw":
      return endsOf(operation.holdId);
    case "refund":
      return [operationIds.refund(operation.holdId), ...endsOf(operation.holdId)];
    case "takeBack":
      return [operationIds.grant(operation.grantId), ...takeBackSlots(operation.entry)];
    case "extend":
      return [operationIds.extend(operation.holdId, operation.step)];
  }
}

/** An open hold has not ended, so no look-up is needed. So most ends cost one write and no read. */
function isEndOfOpen(operation: Operation, { holds }: Image): boolean {
  const { kind } = operation;
  const isEnd = kind === "settle" || kind === "release" || kind === "draw";
  return isEnd && holds.has(operation.holdId);
}

/** Operation ids of everything that ends a hold. */
function endsOf(holdId: string): string[] {
  return [operationIds.charge(holdId), operationIds.close(holdId), operationIds.lapse(holdId)];
}

/** Copies tails to the journal. */
export interface Flusher {
  /** Copies an image's tail, then removes it from the wallet. One at a time for a wallet: a call joins one that is under way. */
  flush(image: Image): Promise<void>;
}

/** Makes a {@link Flusher}. */
export function createFlusher(db: MongoDatabase): Flusher {
  const wallets = db.collection<WalletDocument>(ledgerCollections.wallets);
  const journal = db.collection<JournalDocument>(ledgerCollections.journal);
  const running = new Map<string, Promise<void>>();

  async function move(image: Image): Promise<void> {
    const entries = image.tail;
    const last = entries.at(-1)?.n;
    if (last === undefined) return;
    await db.attempt(() => copy(journal, image.name, entries));
    // Only now: an entry that was in neither place would be lost.
    const copied = { $pull: { tail: { n: { $lte: last } } } };
    await db.attempt(() => wallets.updateOne({ _id: image.name }, copied));
    image.tail = image.tail.filter(({ n }) => n > last);
  }
  return {
    flush(image) {
      const known = running.get(image.name);
      if (known) return known;
      const moving = move(image).finally(() => running.delete(image.name));
      running.set(image.name, moving);
      return moving;
    },
  };
}

/** Adds entries to the journal. Existing ones are not changed, and must be the same. */
async function copy(
  journal: Collection<JournalDocument>,
  wallet: string,
  entries: readonly Entry[],
): Promise<void> {
  const docs = entries.map((entry) => journalDocument(wallet, entry));
  try {
    await journal.insertMany(docs, { ordered: false });
    return;
  } catch (error) {
    if (!isDuplicate(error)) throw error;
  }
  const hashes = new Map(docs.map(({ _id, h }) => [_id, h]));
  for await (const { _id, h } of journal.find({ _id: { $in: [...hashes.keys()] } })) {
    if (hashes.get(_id) === h) hashes.delete(_id);
  }
  if (hashes.size > 0) throw new Error(`the journal of ${wallet} has other entries than its tail`);
}
