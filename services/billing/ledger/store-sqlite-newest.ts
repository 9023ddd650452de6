import type { SqlRow, SqlRunner } from "#kit/store/sqlite.ts";
import { entryColumns, entryOf, entryValues, type WalletId } from "./store-sqlite-rows.ts";
import type { Entry } from "./wallet.ts";

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
