// Declares the tables of usage in SQLite, a step for each version.

import { usualKind, usualStatus } from "./usage-store.ts";

/** Columns of the sums, in the order of their names. */
export const sumColumns = [
  "requests",
  "input_tokens",
  "cached_input_tokens",
  "output_tokens",
  "reasoning_tokens",
  "images",
  "media_ms",
  "characters",
  "spent",
] as const;

/** The same for the rollup by upstream. */
export const servedColumns = [
  "requests",
  "spent",
  "costed_requests",
  "costed_spent",
  "upstream_cost",
  "input_cache_write_tokens",
  "input_cache_write_long_tokens",
  "input_audio_tokens",
  "input_image_tokens",
  "output_audio_tokens",
  "output_image_tokens",
  "tool_calls",
] as const;

/**
 * Rows of the rollups and of the lines name account and unit themselves, because a page has both wallets of an account. Only a line's
 * entry holds its record. Most requests are text that was completed, so the indexes on state and kind leave them out.
 */
export const usageSchema: readonly string[] = [
  `
  CREATE TABLE ledger_usage_cursor (
    wallet INTEGER PRIMARY KEY,
    n INTEGER NOT NULL,
    balance INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE ledger_usage (
    account_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    model TEXT NOT NULL,
    unit TEXT NOT NULL,
    n INTEGER NOT NULL,
    ${sumColumns.map((name) => `${name} INTEGER NOT NULL`).join(", ")},
    PRIMARY KEY (account_id, hour, key_id, kind, model, unit)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ledger_usage_key ON ledger_usage (account_id, key_id, hour);

  CREATE TABLE ledger_line (
    account_id TEXT NOT NULL,
    at INTEGER NOT NULL,
    unit TEXT NOT NULL,
    n INTEGER NOT NULL,
    wallet INTEGER NOT NULL,
    kind TEXT NOT NULL,
    key_id TEXT NOT NULL,
    model TEXT NOT NULL,
    status TEXT NOT NULL,
    amount INTEGER NOT NULL,
    balance INTEGER NOT NULL,
    public_id TEXT NOT NULL,
    request_id TEXT NOT NULL,
    PRIMARY KEY (account_id, at, unit, n)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ledger_line_key ON ledger_line (account_id, key_id, at);
  CREATE INDEX ledger_line_model ON ledger_line (account_id, model, at);
  CREATE INDEX ledger_line_status ON ledger_line (account_id, status, at)
    WHERE status <> '${usualStatus}' AND status <> '';
  CREATE INDEX ledger_line_kind ON ledger_line (account_id, kind, at) WHERE kind <> '${usualKind}';
  CREATE INDEX ledger_line_public ON ledger_line (account_id, public_id, at) WHERE public_id <> '';
  CREATE INDEX ledger_line_request ON ledger_line (account_id, request_id, at)
    WHERE request_id <> '';
  `,
  // The rollup's sums of a key are those of all its entries.
  `
  CREATE TABLE ledger_key_total (
    account_id TEXT NOT NULL,
    unit TEXT NOT NULL,
    key_id TEXT NOT NULL,
    n INTEGER NOT NULL,
    spent INTEGER NOT NULL,
    PRIMARY KEY (account_id, unit, key_id)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO ledger_key_total SELECT account_id, unit, key_id, max(n), sum(spent) FROM ledger_usage
    WHERE key_id <> '' GROUP BY account_id, unit, key_id;
  `,
  // It is counted from the first entry on, because the rollup knows no upstream.
  `
  ALTER TABLE ledger_usage_cursor ADD COLUMN served_n INTEGER NOT NULL DEFAULT 0;
  CREATE TABLE ledger_served (
    account_id TEXT NOT NULL,
    hour INTEGER NOT NULL,
    key_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    model TEXT NOT NULL,
    upstream TEXT NOT NULL,
    unit TEXT NOT NULL,
    n INTEGER NOT NULL,
    ${servedColumns.map((name) => `${name} INTEGER NOT NULL`).join(", ")},
    PRIMARY KEY (account_id, hour, key_id, kind, model, upstream, unit)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX ledger_served_key ON ledger_served (account_id, key_id, hour);
  CREATE INDEX ledger_served_hour ON ledger_served (hour);
  `,
  // For operators, who list the requests of all accounts. Ids are found without an account by the same index as with one.
  `
  CREATE INDEX IF NOT EXISTS ledger_line_shared_all ON ledger_line (at, unit, n, account_id);
  CREATE INDEX IF NOT EXISTS ledger_line_shared_status ON ledger_line (status, at, unit, n, account_id)
    WHERE status <> '${usualStatus}' AND status <> '';
  CREATE INDEX IF NOT EXISTS ledger_line_shared_kind ON ledger_line (kind, at, unit, n, account_id)
    WHERE kind <> '${usualKind}';
  DROP INDEX ledger_line_public;
  DROP INDEX ledger_line_request;
  CREATE INDEX ledger_line_public ON ledger_line (public_id, account_id, at) WHERE public_id <> '';
  CREATE INDEX ledger_line_request ON ledger_line (request_id, account_id, at)
    WHERE request_id <> '';
  `,
];
