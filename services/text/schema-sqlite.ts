/** Under what the steps below are counted. */
export const schemaName = "text";

/** Tables of the text service, step by step; a step that was shipped is never changed. */
export const textSchema: readonly string[] = [
  `CREATE TABLE text_usage (
    request_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    operation TEXT NOT NULL,
    model_id TEXT NOT NULL,
    catalog_version TEXT NOT NULL,
    price_input INTEGER NOT NULL,
    price_cached INTEGER NOT NULL,
    price_output INTEGER NOT NULL,
    bound_input INTEGER NOT NULL,
    bound_output INTEGER NOT NULL,
    hold_amount INTEGER NOT NULL,
    hold_check_at INTEGER NOT NULL,
    owner TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    status TEXT NOT NULL,
    dispatched INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    idem_key TEXT,
    fingerprint TEXT,
    charge TEXT,
    reported TEXT,
    end_kind TEXT,
    closed_at INTEGER
  ) STRICT;
  CREATE UNIQUE INDEX text_usage_idem ON text_usage (key_id, operation, idem_key) WHERE idem_key IS NOT NULL;
  CREATE INDEX text_usage_due ON text_usage (due_at);
  CREATE INDEX text_usage_review ON text_usage (closed_at) WHERE status = 'review';
  CREATE TABLE text_answer (
    request_id TEXT PRIMARY KEY,
    body BLOB NOT NULL
  ) STRICT;
  CREATE TABLE text_opaque (
    hash TEXT NOT NULL,
    account_id TEXT NOT NULL,
    upstream TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (hash, account_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX text_opaque_until ON text_opaque (until);`,
  `CREATE TABLE text_review (
    request_id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    model_id TEXT NOT NULL,
    reported TEXT NOT NULL,
    charged INTEGER NOT NULL,
    at INTEGER NOT NULL,
    until INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX text_review_at ON text_review (at);
  CREATE INDEX text_review_until ON text_review (until);`,
  // What is at work is looked for in both directions of time, and not among the answers that are kept.
  `DROP INDEX text_usage_due;
  CREATE INDEX text_usage_due ON text_usage (due_at) WHERE status <> 'closed';
  CREATE INDEX text_usage_kept ON text_usage (due_at) WHERE status = 'closed';`,
  // Names of a JSON array; null: none, or the answer is an older release's.
  "ALTER TABLE text_answer ADD COLUMN ignored TEXT",
  // Bytes of kept answers. Those of older releases are not among them: they are over within a day.
  `CREATE TABLE text_kept (
    account_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    PRIMARY KEY (account_id, until)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX text_kept_until ON text_kept (until);`,
  // What a record says beside the charge, as JSON; null: an older release wrote the row.
  "ALTER TABLE text_usage ADD COLUMN told TEXT",
];
