// Declares the ledger's tables in SQLite, step by step. `store-sqlite-rows.ts` reads and writes them.

/**
 * The ledger's tables, a step for each version. The checks repeat the law of the wallet by other means. The triggers keep the journal
 * append-only against mistakes, and the hash chain serves for the rest. Rows name their wallet by a number, and only the operation id
 * of an entry names its hold. The index on random operation ids is the main cost of an entry, so it is kept small.
 */
export const ledgerSchema: readonly string[] = [
  `
  CREATE TABLE ledger_wallet (
    id INTEGER PRIMARY KEY,
    account_id TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('usd_micros', 'credits')),
    granted INTEGER NOT NULL,
    free INTEGER NOT NULL CHECK (free >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    spent INTEGER NOT NULL CHECK (spent >= 0),
    month TEXT NOT NULL,
    month_spent INTEGER NOT NULL CHECK (month_spent BETWEEN 0 AND spent),
    open_holds INTEGER NOT NULL CHECK (open_holds >= 0),
    n INTEGER NOT NULL,
    at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    UNIQUE (account_id, unit),
    CHECK (free + held + spent = granted)
  ) STRICT;

  CREATE TABLE ledger_key (
    wallet INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    month TEXT NOT NULL,
    spent INTEGER NOT NULL CHECK (spent >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    PRIMARY KEY (wallet, key_id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE ledger_hold (
    wallet INTEGER NOT NULL,
    hold_id TEXT NOT NULL,
    amount INTEGER NOT NULL CHECK (amount >= 0),
    hold_kind TEXT NOT NULL,
    key_id TEXT NOT NULL,
    ref TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    check_at INTEGER NOT NULL,
    extensions INTEGER NOT NULL,
    PRIMARY KEY (wallet, hold_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ledger_hold_due ON ledger_hold (check_at, wallet, hold_id);

  CREATE TABLE ledger_entry (
    wallet INTEGER NOT NULL,
    n INTEGER NOT NULL,
    operation_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    hold_kind TEXT NOT NULL,
    key_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    free_delta INTEGER NOT NULL,
    held_delta INTEGER NOT NULL,
    spent_delta INTEGER NOT NULL,
    ref TEXT NOT NULL,
    at INTEGER NOT NULL,
    check_at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (wallet, n)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX ledger_entry_operation ON ledger_entry (wallet, operation_id);
  CREATE TRIGGER ledger_entry_no_update BEFORE UPDATE ON ledger_entry
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
  CREATE TRIGGER ledger_entry_no_delete BEFORE DELETE ON ledger_entry
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
  `,
  // The month before, for when a clock comes back that was ahead.
  `
  ALTER TABLE ledger_wallet ADD COLUMN last_month TEXT NOT NULL DEFAULT '';
  ALTER TABLE ledger_wallet ADD COLUMN last_month_spent INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE ledger_key ADD COLUMN last_month TEXT NOT NULL DEFAULT '';
  ALTER TABLE ledger_key ADD COLUMN last_month_spent INTEGER NOT NULL DEFAULT 0;
  `,
  // For limits of a day, of a week and for ever. Null for older keys, until their entries were added up.
  `
  ALTER TABLE ledger_key ADD COLUMN day TEXT;
  ALTER TABLE ledger_key ADD COLUMN day_spent INTEGER CHECK (day_spent >= 0);
  ALTER TABLE ledger_key ADD COLUMN last_day TEXT;
  ALTER TABLE ledger_key ADD COLUMN last_day_spent INTEGER;
  ALTER TABLE ledger_key ADD COLUMN week TEXT;
  ALTER TABLE ledger_key ADD COLUMN week_spent INTEGER CHECK (week_spent >= 0);
  ALTER TABLE ledger_key ADD COLUMN last_week TEXT;
  ALTER TABLE ledger_key ADD COLUMN last_week_spent INTEGER;
  ALTER TABLE ledger_key ADD COLUMN ever_spent INTEGER CHECK (ever_spent >= 0);
  `,
  // Entries that were not moved to the journal yet, in the order of their coming (store-sqlite-wallets.ts).
  `
  CREATE TABLE ledger_newest (
    seq INTEGER PRIMARY KEY,
    wallet INTEGER NOT NULL,
    n INTEGER NOT NULL,
    operation_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    hold_kind TEXT NOT NULL,
    key_id TEXT NOT NULL,
    amount INTEGER NOT NULL,
    free_delta INTEGER NOT NULL,
    held_delta INTEGER NOT NULL,
    spent_delta INTEGER NOT NULL,
    ref TEXT NOT NULL,
    at INTEGER NOT NULL,
    check_at INTEGER NOT NULL,
    hash TEXT NOT NULL
  ) STRICT;
  CREATE TRIGGER ledger_newest_no_update BEFORE UPDATE ON ledger_newest
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
  CREATE TRIGGER ledger_newest_no_delete BEFORE DELETE ON ledger_newest
    WHEN NOT EXISTS (SELECT 1 FROM ledger_entry WHERE wallet = OLD.wallet AND n = OLD.n)
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END;
  `,
];
