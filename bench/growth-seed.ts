import { DatabaseSync } from "node:sqlite";
import { maxRepublishMs } from "../services/media/limits.ts";

/** The content of a filled store. */
export interface GrowthSize {
  accounts: number;
  /** Those of all accounts together. */
  entries: number;
  endedJobs: number;
  waitingJobs: number;
  /** The number of accounts with waiting jobs. */
  waitingAccounts: number;
}

/** Rows of the product that are copied: the ids of one account, of its ended job and of its waiting one. */
export interface Template {
  accountId: string;
  endedJob: string;
  waitingJob: string;
}

/** Characters at the end of an id that differ in a copy: its number, in hexadecimal digits. */
export const ownCharacters = 8;

/**
 * Fills a SQLite store: copies rows that the product wrote, under other ids. Columns are read from the tables, so that columns of a later
 * version are copied too. The copies' journals cannot be audited.
 */
export function seedSqlite(file: string, size: GrowthSize, template: Template): void {
  using db = new DatabaseSync(file, { readBigInts: true, enableForeignKeyConstraints: false });
  db.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA cache_size=-200000");
  const { accountId, endedJob, waitingJob } = template;
  const keys = idsOf(db, "SELECT key_id FROM auth_key WHERE account_id = ?", accountId);
  const wallets = db.prepare("SELECT id FROM ledger_wallet WHERE account_id = ? ORDER BY id");
  const walletIds = wallets.all(accountId).map((row) => row.id as bigint);
  const [leastWallet = 0n] = walletIds;
  const [usdWallet] = db
    .prepare("SELECT id FROM ledger_wallet WHERE account_id = ? AND unit = 'usd_micros'")
    .all(accountId)
    .map((row) => row.id as bigint);
  const firstWallet = BigInt(Number(db.prepare("SELECT max(id) AS n FROM ledger_wallet").get()?.n));
  const ofWallets = `IN (${walletIds.join(", ")})`;
  const accountIds = [accountId, ...keys];
  // `i` counts the copies. `a` is the account of a copy.
  const copy = (
    table: string,
    where: string,
    { times, accounts, ids = [] }: { times: number; accounts: number; ids?: readonly string[] },
    more: Record<string, string> = {},
  ) => {
    const columns = columnsOf(db, table).map(({ name, type }) => {
      const own = more[name];
      if (own !== undefined) return [name, own] as const;
      if (name === "wallet" || (table === "ledger_wallet" && name === "id")) {
        return [
          name,
          `${firstWallet + 1n} + ${walletIds.length} * a + (t.${name} - ${leastWallet})`,
        ] as const;
      }
      if (type === "BLOB")
        return [name, `CASE WHEN t.${name} IS NULL THEN NULL ELSE randomblob(32) END`] as const;
      if (type !== "TEXT") return [name, `t.${name}`] as const;
      const ofAccount = accountIds.reduce((text, id) => replaced(text, id, "a"), `t.${name}`);
      return [name, ids.reduce((text, id) => replaced(text, id, "i"), ofAccount)] as const;
    });
    db.exec(`INSERT INTO ${table} (${columns.map(([name]) => name).join(", ")})
      WITH RECURSIVE counted (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM counted WHERE i + 1 < ${times}),
        numbered (i, a) AS (SELECT i, i % ${accounts} FROM counted)
      SELECT ${columns.map(([, value]) => value).join(", ")} FROM numbered, (SELECT * FROM ${table} WHERE ${where}) t`);
  };
  const each = { times: size.accounts, accounts: size.accounts };
  const ofAccount = `account_id = '${accountId}'`;
  db.exec("BEGIN");
  for (const table of ["auth_account", "auth_key", "media_quota"]) {
    copy(table, ofAccount, each);
  }
  // Its last number is that of the last entry that it gets below.
  const perAccount = Math.ceil(size.entries / size.accounts);
  copy("ledger_wallet", ofAccount, each, { n: `t.n + ${perAccount}` });
  copy("ledger_key", `wallet ${ofWallets}`, each);
  const entry = `wallet = ${usdWallet} AND n = (SELECT max(n) FROM ledger_entry WHERE wallet = ${usdWallet})`;
  const lastEntry = Number(db.prepare(`SELECT n FROM ledger_entry WHERE ${entry}`).get()?.n);
  // The numbers of each account's entries continue those of the template.
  copy(
    "ledger_entry",
    entry,
    { times: size.entries, accounts: size.accounts },
    {
      n: `${lastEntry} + i / ${size.accounts}`,
      operation_id: "'req_' || printf('%024x', i)",
    },
  );
  const jobs = [
    [endedJob, { times: size.endedJobs, accounts: size.accounts }],
    [waitingJob, { times: size.waitingJobs, accounts: size.waitingAccounts }],
  ] as const;
  for (const [job, range] of jobs) {
    const files = idsOf(db, "SELECT file_id FROM media_job_output WHERE job_id = ?", job);
    const copies = { ...range, ids: [job, ...files] };
    // Waiting jobs are looked after at intervals that have grown, so that they are not all due at once.
    const due = `t.due_at + i * ${maxRepublishMs} / ${range.times}`;
    copy("media_job", `job_id = '${job}'`, copies, { due_at: due });
    for (const table of ["media_job_spec", "media_job_output"]) {
      copy(table, `job_id = '${job}'`, copies);
    }
    for (const file of files) {
      copy("media_file", `file_id = '${file}'`, copies, { storage_id: "printf('%032x', i)" });
    }
    copy("ledger_hold", `hold_id LIKE '%${job.slice(4)}%' OR ref LIKE '%${job.slice(4)}%'`, copies);
  }
  db.exec("COMMIT");
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

function replaced(text: string, id: string, number: string): string {
  const begin = id.slice(0, -ownCharacters);
  return `replace(${text}, '${id}', '${begin}' || printf('%0${ownCharacters}x', ${number}))`;
}

function idsOf(db: DatabaseSync, sql: string, value: string): string[] {
  return db
    .prepare(sql)
    .all(value)
    .map((row) => String(Object.values(row)[0]));
}

function columnsOf(db: DatabaseSync, table: string): { name: string; type: string }[] {
  return db
    .prepare(`PRAGMA table_info(${table})`)
    .all()
    .map(({ name, type }) => ({ name: String(name), type: String(type) }));
}
