// Holds a wallet of MongoDB in memory while operations are decided, and makes one write of all that they changed.
// `store-mongo-transition.ts` sends it.

import type { Collection, UpdateFilter } from "mongodb";
import type { Change, LedgerView } from "./change.ts";
import type { WalletChange } from "./store-mongo-commands.ts";
import {
  holdDocument,
  holdsOf,
  keyDocument,
  keysOf,
  tailDocument,
  tailEntryOf,
  walletFields,
  walletOf,
} from "./store-mongo-docs.ts";
import type { WalletDocument } from "./store-mongo-schema.ts";
import {
  type Entry,
  emptyWallet,
  type KeyCounter,
  type OpenHold,
  type Wallet,
  type WalletRef,
  walletName,
} from "./wallet.ts";

/** A wallet document at a version. It is updated with each write of this process. */
export interface Image {
  readonly name: string;
  /** 0: there is no document yet. */
  v: number;
  wallet: Wallet;
  readonly holds: Map<string, OpenHold>;
  readonly keys: Map<string, KeyCounter>;
  /** Replaced, never changed, so code that uses one keeps the one that it began with. */
  tail: readonly Entry[];
}

/** An image with the changes of a batch. */
export interface Draft {
  readonly view: LedgerView;
  readonly entries: readonly Entry[];
  /** Adds the change of one operation, which the view then shows. */
  add(change: Change): void;
  wallet(): Wallet;
  /** Holds and keys that differ from the image's. An undefined hold has ended. */
  readonly holds: ReadonlyMap<string, OpenHold | undefined>;
  readonly keys: ReadonlyMap<string, KeyCounter>;
}

/** Reads a wallet. Throws where the stored wallet breaks the law of wallets, because nothing may be based on it. */
export async function readImage(
  wallets: Collection<WalletDocument>,
  ref: WalletRef,
): Promise<Image> {
  const name = walletName(ref);
  const doc = await wallets.findOne({ _id: name });
  if (!doc) {
    const none = { wallet: emptyWallet(ref), holds: new Map(), keys: new Map(), tail: [] };
    return { name, v: 0, ...none };
  }
  const wallet = walletOf(doc);
  mustBeLawful(wallet);
  return {
    name,
    v: Number(doc.v),
    wallet,
    holds: new Map(holdsOf(doc.holds).map((hold) => [hold.holdId, hold])),
    keys: new Map(keysOf(doc.keys).map((key) => [key.keyId, key])),
    tail: doc.tail.map(tailEntryOf),
  };
}

/** Begins a batch. `recorded`: the entries of its operations that were found. Undefined where there is none. */
export function draftOf(image: Image, recorded: ReadonlyMap<string, Entry | undefined>): Draft {
  const holds = new Map<string, OpenHold | undefined>();
  const keys = new Map<string, KeyCounter>();
  const entries: Entry[] = [];
  const made = new Map<string, Entry>();
  const view: LedgerView = {
    wallet: image.wallet,
    hold: (holdId) => (holds.has(holdId) ? holds.get(holdId) : image.holds.get(holdId)),
    key: (keyId) => keys.get(keyId) ?? image.keys.get(keyId),
    recorded(operationId) {
      const known = made.get(operationId);
      if (known) return known;
      if (!recorded.has(operationId)) throw new Error("an entry that was not looked for");
      return recorded.get(operationId);
    },
    entriesAfter(number) {
      const since = [...image.tail, ...entries].filter(({ n }) => n > number);
      return since.length === view.wallet.n - number ? since : undefined;
    },
  };
  return {
    entries,
    holds,
    keys,
    view,
    wallet: () => view.wallet,
    add({ entry, wallet: after, hold, key }) {
      view.wallet = after;
      mustBeLawful(after);
      entries.push(entry);
      made.set(entry.operationId, entry);
      if (entry.kind !== "grant") holds.set(entry.holdId, hold);
      if (key) keys.set(key.keyId, key);
    },
  };
}

/** The write of a batch, under the condition that the wallet still matches its image. */
export function changeOf(image: Image, draft: Draft): WalletChange {
  return {
    name: image.name,
    hash: draft.wallet().hash,
    filter: { _id: image.name, v: image.v },
    update: updateOf(image, draft),
  };
}

/** The document of a wallet that has none. */
export function firstDocument(image: Image, draft: Draft): WalletDocument {
  const holds = [...draft.holds].flatMap(([id, hold]) => (hold ? [[id, holdDocument(hold)]] : []));
  const keys = [...draft.keys].map(([id, key]) => [id, keyDocument(key)]);
  const dueAt = dueAtOf(image, draft);
  return {
    _id: image.name,
    v: 1,
    ...walletFields(draft.wallet()),
    keys: Object.fromEntries(keys),
    holds: Object.fromEntries(holds),
    ...(dueAt === undefined ? {} : { dueAt }),
    tail: draft.entries.map(tailDocument),
  };
}

/** The image after its batch was written. */
export function advanceImage(image: Image, draft: Draft): void {
  image.v += 1;
  image.wallet = draft.wallet();
  for (const [holdId, hold] of draft.holds) {
    if (hold) image.holds.set(holdId, hold);
    else image.holds.delete(holdId);
  }
  for (const [keyId, key] of draft.keys) image.keys.set(keyId, key);
  image.tail = [...image.tail, ...draft.entries];
}

function updateOf(image: Image, draft: Draft): UpdateFilter<WalletDocument> {
  const set: Record<string, unknown> = { v: image.v + 1, ...walletFields(draft.wallet()) };
  const unset: Record<string, ""> = {};
  for (const [holdId, hold] of draft.holds) {
    if (hold) set[`holds.${holdId}`] = holdDocument(hold);
    else if (image.holds.has(holdId)) unset[`holds.${holdId}`] = "";
  }
  for (const [keyId, key] of draft.keys) set[`keys.${keyId}`] = keyDocument(key);
  const dueAt = dueAtOf(image, draft);
  if (dueAt === undefined) unset.dueAt = "";
  else set.dueAt = dueAt;
  return {
    $set: set,
    ...(Object.keys(unset).length > 0 ? { $unset: unset } : {}),
    // Pushed, not set, so that entries that were copied to the journal meanwhile stay out of the tail.
    $push: { tail: { $each: draft.entries.map(tailDocument) } },
  };
}

function dueAtOf(image: Image, draft: Draft): number | undefined {
  let dueAt: number | undefined;
  const look = (hold: OpenHold | undefined) => {
    if (hold && (dueAt === undefined || hold.checkAt < dueAt)) dueAt = hold.checkAt;
  };
  for (const [holdId, hold] of image.holds) if (!draft.holds.has(holdId)) look(hold);
  for (const hold of draft.holds.values()) look(hold);
  return dueAt;
}

function mustBeLawful(wallet: Wallet): void {
  const { granted, free, held, spent } = wallet;
  if (free >= 0n && held >= 0n && spent >= 0n && free + held + spent === granted) return;
  throw new Error(`wallet ${walletName(wallet)} breaks its law: audit the ledger`);
}
