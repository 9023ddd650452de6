// Carries operations on one wallet out in MongoDB: reads, decides, and writes if no other process was faster. Otherwise it begins
// again. `store-mongo-wallets.ts` prepares the write.

import type { Collection } from "mongodb";
import type { MongoDatabase } from "#kit/store/mongo/connect.ts";
import { awayRefusal, isDuplicate } from "#kit/store/mongo/errors.ts";
import {
  conflictPauseMs,
  maxConflicts,
  maxImages,
  maxTail,
  tailFlushedAt,
  waryTransitions,
} from "../base/limits.ts";
import type { TimedOperation } from "./batches.ts";
import type { Fold } from "./ledger.ts";
import type { Outcome } from "./operations.ts";
import { createSharedCommands, type SharedCommands } from "./store-mongo-commands.ts";
import { createFlusher, type Flusher, readRecorded } from "./store-mongo-journal.ts";
import {
  type JournalDocument,
  ledgerCollections,
  type WalletDocument,
} from "./store-mongo-schema.ts";
import {
  advanceImage,
  changeOf,
  type Draft,
  draftOf,
  firstDocument,
  type Image,
  readImage,
} from "./store-mongo-wallets.ts";
import { type WalletRef, walletName } from "./wallet.ts";

/** Applies operations to one wallet, all those that are not refused at once. One at a time for a wallet. */
export type Transition = (
  wallet: WalletRef,
  operations: readonly TimedOperation[],
) => Promise<Outcome[]>;

interface Context {
  wallets: Collection<WalletDocument>;
  shared: SharedCommands;
  images: Images;
  flusher: Flusher;
  rules: Fold;
}

/**
 * A write that was sent and got no answer: its last entry and its outcomes. The hash of the last entry covers all of them. The first
 * one's would not do: another process may have made the same first entry in the same ms, without those that follow here.
 */
interface UnheardWrite {
  operationId: string;
  hash: string;
  outcomes: Outcome[];
}

/**
 * Makes a {@link Transition}. Where another process was faster, the operations are folded again on the changed wallet. A write that was
 * sent without an answer is looked for first. Where it was carried out, its outcomes apply.
 */
export function createTransition(
  db: MongoDatabase,
  { rules, onConflict }: { rules: Fold; onConflict: (wallet: WalletRef) => void },
): Transition {
  const wallets = db.collection<WalletDocument>(ledgerCollections.wallets);
  const journal = db.collection<JournalDocument>(ledgerCollections.journal);
  const ctx: Context = {
    wallets,
    shared: createSharedCommands(wallets, journal),
    images: createImages(),
    flusher: createFlusher(db),
    rules,
  };
  return (ref, operations) => {
    const unheard: UnheardWrite[] = [];
    return db.attempt(async () => {
      for (let conflicts = 0; conflicts < maxConflicts; conflicts++) {
        const result = await tryOnce(ctx, ref, operations, unheard);
        if (Array.isArray(result)) return result;
        if (result === "overtaken") onConflict(ref);
        await db.clock.sleep(Math.random() * conflictPauseMs * conflicts);
      }
      throw awayRefusal(new Error(`a wallet's transition was overtaken ${maxConflicts} times`));
    });
  };
}

/** `stale`: the remembered wallet has changed. `overtaken`: it changed before the write. */
async function tryOnce(
  ctx: Context,
  ref: WalletRef,
  operations: readonly TimedOperation[],
  unheard: UnheardWrite[],
): Promise<Outcome[] | "stale" | "overtaken"> {
  const { wallets, shared, images, flusher } = ctx;
  const name = walletName(ref);
  const remembered = images.get(name);
  const image = remembered ?? (await readImage(wallets, ref));
  while (image.tail.length + operations.length > maxTail) await flusher.flush(image);
  const asked = operations.map(({ operation }) => operation);
  const draft = draftOf(image, await readRecorded(shared, image, asked));
  // It was carried out, and its callers get the outcomes of that moment. By now the wallet has changed.
  const heard = unheard.find(({ operationId, hash }) => {
    return draft.view.recorded(operationId)?.hash === hash;
  });
  if (heard) return heard.outcomes;
  const outcomes = foldAll(ctx.rules, draft, operations);
  if (draft.entries.length === 0) {
    // No compare-and-set follows, so this checks the wallet. A refusal must not be based on an earlier state.
    const isNow = !remembered || (await isCurrent(wallets, image));
    if (isNow && image.v > 0) images.put(image);
    if (!isNow) images.drop(name);
    return isNow ? outcomes : "stale";
  }
  // Whether or not the write succeeds, the next one must not use the old image.
  images.drop(name);
  let written = false;
  try {
    written = await write(ctx, image, draft);
  } finally {
    // It may still have been carried out, and another change may have followed.
    const entry = draft.entries.at(-1);
    if (!written && entry) unheard.push({ ...entry, outcomes });
  }
  if (!written) {
    images.distrust(name);
    return "overtaken";
  }
  advanceImage(image, draft);
  images.put(image);
  // Entries whose copying fails stay in the tail. Where room is short, the next copying is awaited, and its error is thrown.
  if (image.tail.length >= tailFlushedAt) void flusher.flush(image).catch(() => undefined);
  return outcomes;
}

function foldAll(rules: Fold, draft: Draft, operations: readonly TimedOperation[]): Outcome[] {
  return operations.map(({ operation, now }) => {
    const { outcome, change } = rules(draft.view, operation, now);
    if (change) draft.add(change);
    return outcome;
  });
}

async function isCurrent(wallets: Collection<WalletDocument>, image: Image): Promise<boolean> {
  const found = await wallets.findOne({ _id: image.name, v: image.v }, { projection: { _id: 1 } });
  return found !== null;
}

/** False where the wallet has changed since its image. Nothing was written then. */
async function write({ wallets, shared }: Context, image: Image, draft: Draft): Promise<boolean> {
  if (image.v > 0) return shared.compareAndSet(changeOf(image, draft));
  try {
    await wallets.insertOne(firstDocument(image, draft));
    return true;
  } catch (error) {
    if (isDuplicate(error)) return false;
    throw error;
  }
}

/** Wallets as this process last wrote them, so that the next batch needs no read. The least recently used one is forgotten. */
interface Images {
  get(name: string): Image | undefined;
  put(image: Image): void;
  drop(name: string): void;
  /** Another process works on this wallet too. For some transitions, reading it costs less than losing a race. */
  distrust(name: string): void;
}

/** Makes an empty cache. */
function createImages(): Images {
  const images = new Map<string, Image>();
  const wary = new Map<string, number>();
  return {
    get: (name) => images.get(name),
    put(image) {
      const { name } = image;
      const left = wary.get(name) ?? 0;
      wary.delete(name);
      if (left > 1) wary.set(name, left - 1);
      images.delete(name);
      if (left === 0) keep(images, name, image);
    },
    drop: (name) => images.delete(name),
    distrust(name) {
      images.delete(name);
      wary.delete(name);
      keep(wary, name, waryTransitions);
    },
  };
}

function keep<T>(map: Map<string, T>, name: string, value: T): void {
  map.set(name, value);
  if (map.size <= maxImages) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
