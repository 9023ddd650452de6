// Keeps wallets of SQLite in memory between transactions. So an operation writes one row, its entry, and the others' rows follow
// many entries later.

import type { SqlRow, SqlRunner } from "#kit/store/sqlite.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import { maxEntriesSince, maxImageKeys, maxImages, newestMovedAt } from "../base/limits.ts";
import type { Change, LedgerView } from "./change.ts";
import {
  deleteHold,
  entryColumns,
  entryOf,
  entryValues,
  insertHold,
  insertWallet,
  readEntriesAfter,
  readEntry,
  readHold,
  readKey,
  readWallet,
  readWalletRef,
  updateHold,
  updateWallet,
  type WalletId,
  writeKey,
} from "./store-sqlite-rows.ts";
import {
  advanceHold,
  advanceKey,
  advanceWallet,
  countsForKey,
  type Entry,
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
 * A wallet in memory, so that a transition reads no row of it twice, as long as no other process has changed the file. An entry is
 * written with each change, among the newest. The wallet's own row and those of its keys and holds are what they were at the last
 * move, until {@link WalletImage.write} brings them up to the entries.
 */
export class WalletImage implements LedgerView {
  wallet: Wallet;
  /** The transaction that runs. */
  tx: SqlRunner;
  /** A wallet gets its row with its first entry. Until then it has no stored data. */
  #id: WalletId;
  readonly #keys = new Map<string, KeyCounter | undefined>();
  readonly #changedKeys = new Set<string>();
  /** Open holds that this process opened or changed. The others are read. */
  readonly #holds = new Map<string, OpenHold>();
  /** Of these, those without a row. */
  readonly #opened = new Set<string>();
  /** Of these, those whose row has another check time. */
  readonly #extended = new Set<string>();
  /** Holds that have ended, and still have a row. */
  readonly #ended = new Set<string>();
  /** Entries since the last move, by their operation. */
  readonly #newest = new Map<string, Entry>();

  constructor(tx: SqlRunner, ref: WalletRef) {
    const stored = readWallet(tx, ref);
    this.tx = tx;
    this.wallet = stored?.wallet ?? emptyWallet(ref);
    this.#id = stored?.id ?? noWallet;
  }

  get id(): WalletId {
    return this.#id;
  }

  /** Has it entries that were not moved? */
  get isChanged(): boolean {
    return this.#newest.size > 0;
  }

  readonly hold = (holdId: string): OpenHold | undefined => {
    const known = this.#holds.get(holdId);
    if (known || this.#ended.has(holdId)) return known;
    return readHold(this.tx, this.#id, holdId);
  };

  readonly key = (keyId: string): KeyCounter | undefined => {
    if (!this.#keys.has(keyId)) this.#keys.set(keyId, readKey(this.tx, this.#id, keyId));
    return this.#keys.get(keyId);
  };

  readonly recorded = (operationId: string): Entry | undefined => {
    return this.#newest.get(operationId) ?? readEntry(this.tx, this.#id, operationId);
  };

  readonly entriesAfter = (number: number): Entry[] | undefined => {
    const moved = readEntriesAfter(this.tx, this.#id, number, maxEntriesSince);
    const newest = [...this.#newest.values()].filter(({ n }) => n > number);
    const isAll = moved && moved.length + newest.length <= maxEntriesSince;
    return isAll ? [...moved, ...newest] : undefined;
  };

  /** Writes a change down. Where it throws, the transaction is undone, and this image with it. */
  change(change: Change): void {
    checkLaw(change);
    if (this.#id === noWallet) this.#id = insertWallet(this.tx, change.wallet);
    insertNewest(this.tx, this.#id, change.entry);
    this.#follow(change);
  }

  /** Goes on with an entry that stands among the newest, and was made by a process that has ended, or by another one. */
  advance(entry: Entry): void {
    const { kind, holdId, keyId } = entry;
    const wallet = advanceWallet(this.wallet, entry);
    const change = {
      entry,
      wallet,
      hold: advanceHold(kind === "extend" ? this.hold(holdId) : undefined, entry),
      key: countsForKey(wallet.unit, entry) ? advanceKey(this.key(keyId), entry) : undefined,
    };
    checkLaw(change);
    this.#follow(change);
  }

  /** Writes the rows of the wallet, its keys and its holds, as its entries have left them. */
  write(tx: SqlRunner): void {
    this.tx = tx;
    updateWallet(tx, this.#id, this.wallet);
    for (const keyId of this.#changedKeys) {
      const key = this.#keys.get(keyId);
      if (key) writeKey(tx, this.#id, key);
    }
    for (const holdId of this.#ended) deleteHold(tx, this.#id, holdId);
    for (const [write, ids] of [
      [insertHold, this.#opened],
      [updateHold, this.#extended],
    ] as const) {
      for (const holdId of ids) {
        const hold = this.#holds.get(holdId);
        if (hold) write(tx, this.#id, hold);
      }
    }
    for (const done of [this.#changedKeys, this.#ended, this.#opened, this.#extended, this.#newest])
      done.clear();
    if (this.#keys.size > maxImageKeys) this.#keys.clear();
  }

  #follow({ entry, wallet, hold, key }: Change): void {
    const { holdId } = entry;
    if (hold) {
      this.#holds.set(holdId, hold);
      if (entry.kind === "hold") this.#opened.add(holdId);
      else if (!this.#opened.has(holdId)) this.#extended.add(holdId);
    } else if (holdId !== "") {
      this.#holds.delete(holdId);
      this.#extended.delete(holdId);
      if (!this.#opened.delete(holdId)) this.#ended.add(holdId);
    }
    if (key) {
      this.#keys.set(key.keyId, key);
      this.#changedKeys.add(key.keyId);
    }
    this.#newest.set(entry.operationId, entry);
    this.wallet = wallet;
  }
}

/** Checks before an entry is written what the tables check at the next move. */
function checkLaw({ wallet, key }: Change): void {
  const { granted, free, held, spent, month, openHolds } = wallet;
  const isLawful =
    free >= 0n &&
    held >= 0n &&
    spent >= 0n &&
    free + held + spent === granted &&
    month.spent >= 0n &&
    month.spent <= spent &&
    openHolds >= 0 &&
    (!key || isLawfulKey(key));
  if (!isLawful) throw new Error("an entry would break the law of its wallet");
}

function isLawfulKey({ month, held, totals }: KeyCounter): boolean {
  if (month.spent < 0n || held < 0n) return false;
  return !totals || (totals.day.spent >= 0n && totals.week.spent >= 0n && totals.ever >= 0n);
}

/** Wallets that were used recently, and the moves of their newest entries to the journal. */
export class WalletImages {
  readonly #images = new Map<string, WalletImage>();
  /** Wallets whose newest entries the journal does not take, and why. */
  readonly #broken = new Map<string, { id: WalletId; error: unknown }>();
  /** Entries since the last move. */
  #count = 0;
  /** There may be newest entries whose wallets are not in memory. */
  #isUnknown = true;
  #version: SqlTransaction["othersVersion"];
  readonly #forget = () => {
    this.#isUnknown = true;
  };

  /** The wallet in the state of the open transaction. */
  of(tx: SqlTransaction, ref: WalletRef): WalletImage {
    this.#catchUp(tx);
    const name = walletName(ref);
    const broken = this.#broken.get(name);
    if (broken) throw broken.error;
    let image = this.#images.get(name);
    if (!image) {
      if (this.#images.size >= maxImages) dropOne(this.#images);
      image = new WalletImage(tx, ref);
      this.#images.set(name, image);
    }
    image.tx = tx;
    return image;
  }

  /** Notes that entries were added. */
  added(tx: SqlTransaction, count: number): void {
    this.#count += count;
    if (this.#count >= newestMovedAt) this.move(tx);
  }

  /** Would a move change anything? Wallets that are known to be broken stay so until another connection changes the file. */
  canMove(db: SqlRunner): boolean {
    const ids = this.#isUnknown ? [] : [...this.#broken.values()].map(({ id }) => id);
    if (hasNewest(db, ids)) return true;
    return ids.length > 0 && db.get("PRAGMA data_version")?.data_version !== this.#version;
  }

  /** Moves newest entries to the journal, and writes the rows of their wallets. */
  move(tx: SqlTransaction): void {
    // Entries of which nothing is known here.
    if (this.#count === 0) this.#isUnknown = true;
    this.#catchUp(tx);
    if (this.#count === 0) return;
    const changed = [...this.#images.values()].filter(({ isChanged }) => isChanged);
    if (this.#broken.size === 0) moveEntries(tx);
    else for (const { id } of changed) moveEntries(tx, id);
    for (const image of changed) image.write(tx);
    this.#count = 0;
  }

  /** Reads what another process has written, or this one before it forgot it, and moves it. */
  #catchUp(tx: SqlTransaction): void {
    tx.onUndo(this.#forget);
    if (!this.#isUnknown && tx.othersVersion === this.#version) return;
    this.#images.clear();
    this.#broken.clear();
    this.#count = 0;
    for (const [id, entries] of readNewest(tx)) this.#takeOver(tx, id, entries);
    this.#version = tx.othersVersion;
    this.#isUnknown = false;
  }

  /** Alone, because a wallet that contradicts its journal must not hold the others up. */
  #takeOver(tx: SqlTransaction, id: WalletId, entries: readonly Entry[]): void {
    const ref = readWalletRef(tx, id);
    if (!ref) {
      // Its row is gone. An audit finds that in the journal.
      moveEntries(tx, id);
      return;
    }
    tx.run("SAVEPOINT moving");
    try {
      const image = new WalletImage(tx, ref);
      for (const entry of entries) image.advance(entry);
      moveEntries(tx, id);
      image.write(tx);
    } catch (error) {
      tx.run("ROLLBACK TO moving");
      this.#broken.set(walletName(ref), { id, error });
    }
    tx.run("RELEASE moving");
  }
}

/** Removes the first one whose rows are up to date. */
function dropOne(images: Map<string, WalletImage>): void {
  for (const [name, image] of images) {
    if (image.isChanged) continue;
    images.delete(name);
    return;
  }
}

/**
 * Newest entries: those that were made since the last move. Their table keeps them in the order of their coming, so an entry writes its
 * end alone. The journal, the holds and their indexes have a place for each wallet.
 */

const columns = entryColumns.join(", ");
const insertSql = `INSERT INTO ledger_newest (wallet, ${columns})
  SELECT ?1, ${entryColumns.map((_, i) => `?${i + 2}`).join(", ")}
  WHERE NOT EXISTS (SELECT 1 FROM ledger_entry WHERE wallet = ?1 AND n = ?2)`;

/** Adds an entry. Fails where its number is taken. Its wallet has looked its operation id up. */
export function insertNewest(db: SqlRunner, id: WalletId, entry: Entry): void {
  if (db.run(insertSql, id, ...entryValues(entry)) === 0) {
    throw new Error(`the journal of a wallet has an entry ${entry.n} already`);
  }
}

const otherSql =
  "SELECT 1 FROM ledger_newest WHERE wallet NOT IN (SELECT value FROM json_each(?)) LIMIT 1";

/** Is there an entry that was not moved, of a wallet other than these? */
export function hasNewest(db: SqlRunner, others: Iterable<WalletId>): boolean {
  return db.get(otherSql, `[${[...others].join()}]`) !== undefined;
}

/** Entries that were not moved, by wallet, in their order. */
export function readNewest(db: SqlRunner): Map<WalletId, Entry[]> {
  const rows = db.all("SELECT * FROM ledger_newest ORDER BY seq");
  const walletOf = (row: SqlRow) => row.wallet as WalletId;
  return new Map(
    [...Map.groupBy(rows, walletOf)].map(([id, ofWallet]) => [id, ofWallet.map(entryOf)]),
  );
}

/** Moves entries to the journal: those of one wallet, or all. */
export function moveEntries(db: SqlRunner, id?: WalletId): void {
  const which = id === undefined ? "" : "WHERE wallet = ?";
  const values = id === undefined ? [] : [id];
  db.run(
    `INSERT INTO ledger_entry (wallet, ${columns}) SELECT wallet, ${columns} FROM ledger_newest ${which}
     ORDER BY wallet, n`,
    ...values,
  );
  db.run(`DELETE FROM ledger_newest ${which}`, ...values);
}
