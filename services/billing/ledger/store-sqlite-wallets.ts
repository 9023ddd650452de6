import type { SqlRunner } from "#kit/store/sqlite.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import { maxImageKeys, maxImages } from "../base/limits.ts";
import type { Change } from "./ledger.ts";
import {
  deleteHold,
  insertEntry,
  insertHold,
  insertWallet,
  readHold,
  readKey,
  readWallet,
  updateHold,
  updateWallet,
  type WalletId,
  writeKey,
} from "./store-sqlite-rows.ts";
import {
  emptyWallet,
  type KeyCounter,
  type OpenHold,
  type Wallet,
  type WalletRef,
  walletName,
} from "./wallet.ts";

/** The number of no wallet. SQLite's numbers begin with 1. */
const noWallet = 0n;

/**
 * A wallet in memory, so that a transition reads no row of it twice, as long as no other process has changed the file. Entries and
 * holds are written with each change. The rows of the wallet and its keys are written once before the commit.
 */
export class WalletImage {
  #wallet: Wallet;
  /** A wallet gets its row with its first entry. Until then it has no stored data. */
  #id: WalletId;
  readonly #keys = new Map<string, KeyCounter | undefined>();
  /** Holds that this process opened and that are still open. The others are read. */
  readonly #holds = new Map<string, OpenHold>();
  readonly #changedKeys = new Set<string>();
  #isChanged = false;
  /** For {@link SqlTransaction.beforeCommit}: one function a wallet. */
  readonly flush: () => void;
  /** For {@link SqlTransaction.onUndo}. */
  readonly forget: () => void;

  /** `tx` is the process's one connection, which every transaction uses. */
  constructor(tx: SqlRunner, ref: WalletRef, forget: (image: WalletImage) => void) {
    const stored = readWallet(tx, ref);
    this.#wallet = stored?.wallet ?? emptyWallet(ref);
    this.#id = stored?.id ?? noWallet;
    this.flush = () => this.#write(tx);
    this.forget = () => forget(this);
  }

  get id(): WalletId {
    return this.#id;
  }

  get wallet(): Wallet {
    return this.#wallet;
  }

  /** Has it changes that are not in its rows yet? */
  get isChanged(): boolean {
    return this.#isChanged;
  }

  hold(tx: SqlRunner, holdId: string): OpenHold | undefined {
    return this.#holds.get(holdId) ?? readHold(tx, this.#id, holdId);
  }

  key(tx: SqlRunner, keyId: string): KeyCounter | undefined {
    if (!this.#keys.has(keyId)) this.#keys.set(keyId, readKey(tx, this.#id, keyId));
    return this.#keys.get(keyId);
  }

  /** Writes a change down. Where it throws, the transaction is undone, and this image with it. */
  change(tx: SqlTransaction, { entry, wallet, hold, key }: Change): void {
    if (this.#id === noWallet) this.#id = insertWallet(tx, wallet);
    insertEntry(tx, this.#id, entry);
    switch (entry.kind) {
      case "hold":
        if (hold) insertHold(tx, this.#id, hold);
        break;
      case "extend":
        if (hold) updateHold(tx, this.#id, hold);
        break;
      case "settle":
      case "release":
      case "draw":
        deleteHold(tx, this.#id, entry.holdId);
        break;
    }
    if (hold) this.#holds.set(hold.holdId, hold);
    else this.#holds.delete(entry.holdId);
    if (key) {
      this.#keys.set(key.keyId, key);
      this.#changedKeys.add(key.keyId);
    }
    this.#wallet = wallet;
    this.#isChanged = true;
    tx.beforeCommit(this.flush);
  }

  #write(tx: SqlRunner): void {
    if (!this.#isChanged) return;
    updateWallet(tx, this.#id, this.#wallet);
    for (const keyId of this.#changedKeys) {
      const key = this.#keys.get(keyId);
      if (key) writeKey(tx, this.#id, key);
    }
    this.#isChanged = false;
    this.#changedKeys.clear();
    if (this.#keys.size > maxImageKeys) this.#keys.clear();
  }
}

/** Wallets that were used recently. */
export interface WalletImages {
  /** The wallet in the state of the open transaction. */
  of(tx: SqlTransaction, ref: WalletRef): WalletImage;
}

/** Makes an empty cache. */
export function createWalletImages(): WalletImages {
  const images = new Map<string, WalletImage>();
  let version: SqlTransaction["othersVersion"];
  return {
    of(tx, ref) {
      if (tx.othersVersion !== version) {
        version = tx.othersVersion;
        images.clear();
      }
      const name = walletName(ref);
      let image = images.get(name);
      if (!image) {
        if (images.size >= maxImages) dropOne(images);
        image = new WalletImage(tx, ref, (gone) => {
          if (images.get(name) === gone) images.delete(name);
        });
        images.set(name, image);
      }
      tx.onUndo(image.forget);
      return image;
    },
  };
}

/** Removes the first one whose rows are up to date. */
function dropOne(images: Map<string, WalletImage>): void {
  for (const [name, image] of images) {
    if (image.isChanged) continue;
    images.delete(name);
    return;
  }
}
