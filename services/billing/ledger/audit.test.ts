import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openSqlite, type SqliteDatabase } from "#kit/store/sqlite.ts";
import { auditWallet, type Difference } from "./audit.ts";
import { type Fold, fold } from "./ledger.ts";
import type { LedgerStore } from "./store.ts";
import { createSqliteLedger } from "./store-sqlite.ts";

const now = Date.UTC(2026, 0, 15, 12);
const usd = { accountId: "acct_a", unit: "usd_micros" } as const;
const hold = { kind: "reserve", holdKind: "text", keyId: "key_a", ref: "req" } as const;

let folder: string;
let db: SqliteDatabase;
let store: LedgerStore;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-audit-"));
  db = openSqlite(join(folder, "ledger.db"));
  store = createSqliteLedger(db);
  await store.open();
  await store.apply(usd, [{ kind: "grant", grantId: "g", amount: 1_000n }], now);
  await store.apply(
    usd,
    [
      { ...hold, holdId: "hold_aaa", amount: 60n, checkAt: now },
      { kind: "settle", holdId: "hold_aaa", amount: 20n },
      { ...hold, holdId: "hold_bbb", amount: 30n, checkAt: now },
      { kind: "extend", holdId: "hold_bbb", step: 1, checkAt: now + 1 },
    ],
    now + 1,
  );
  // Reading moves the newest entries to the journal, where they are tampered with.
  await store.oldestHold();
});
afterEach(async () => {
  db[Symbol.dispose]();
  await rm(folder, { recursive: true });
});

async function audit(): Promise<Difference[]> {
  const found: Difference[] = [];
  for await (const snapshot of store.snapshots(undefined)) {
    for await (const difference of auditWallet(snapshot, { entries: 0 })) found.push(difference);
  }
  return found;
}

/** Changes the file as a person with a SQL shell could, past triggers and checks. */
function tamper(sql: string): void {
  const shell = new DatabaseSync(join(folder, "ledger.db"));
  shell.exec(`DROP TRIGGER IF EXISTS ledger_entry_no_update;
    DROP TRIGGER IF EXISTS ledger_entry_no_delete; PRAGMA ignore_check_constraints = ON; ${sql}`);
  shell.close();
}

const fields = (found: Difference[]) => [...new Set(found.map(({ field }) => field))].sort();

describe("an audit", () => {
  test("of an honest ledger finds nothing", async () => {
    expect(await audit()).toEqual([]);
  });

  test.each([
    ["operation_id", "'hold_aaa:clos'"],
    ["kind", "'release'"],
    ["hold_kind", "'job'"],
    ["key_id", "'key_b'"],
    ["amount", "19"],
    ["free_delta", "41"],
    ["held_delta", "-59"],
    ["spent_delta", "19"],
    ["ref", "'other'"],
    ["at", "at - 1"],
    ["at", "9007199254740991"],
    ["check_at", "1"],
    ["hash", "upper(hash)"],
  ])("finds a changed %s of an entry (%s)", async (column, value) => {
    tamper(`UPDATE ledger_entry SET ${column} = ${value} WHERE n = 3`);
    const found = await audit();
    expect(found).toContainEqual(expect.objectContaining({ field: "chain", entryNumber: 3 }));
    // Of the entries after it, only the one that is chained to a changed hash is reported.
    const accused = found.filter(({ field }) => field === "chain").map((d) => d.entryNumber);
    expect(accused).toEqual(column === "hash" ? [3, 4] : [3]);
  });

  test.each([
    ["granted", "granted = 1001", ["granted"]],
    ["free", "free = 951", ["free"]],
    ["held", "held = 31", ["held"]],
    ["spent", "spent = 19", ["spent"]],
    ["free and granted together", "free = free + 5, granted = granted + 5", ["free", "granted"]],
    ["month", "month = '2026-02'", ["month"]],
    ["month_spent", "month_spent = 19", ["month"]],
    ["open_holds", "open_holds = 0", ["hold"]],
    ["n", "n = 4", ["sequence"]],
    ["at", "at = at + 1", ["sequence"]],
    ["hash", "hash = ''", ["chain"]],
  ])("finds a wallet's changed %s", async (_, change, expected) => {
    tamper(`UPDATE ledger_wallet SET ${change}`);
    expect(fields(await audit())).toEqual(expected);
  });

  test.each([
    ["spent", "UPDATE ledger_key SET spent = 0"],
    ["held", "UPDATE ledger_key SET held = 0"],
    ["month", "UPDATE ledger_key SET month = '2025-12'"],
    ["day", "UPDATE ledger_key SET day_spent = 19"],
    ["week", "UPDATE ledger_key SET week = '2026-01-01'"],
    ["total", "UPDATE ledger_key SET ever_spent = 21"],
    ["row, gone", "DELETE FROM ledger_key"],
    [
      "row, invented",
      "INSERT INTO ledger_key (wallet, key_id, month, spent, held) VALUES (1, 'key_z', '2026-01', 1, 0)",
    ],
  ])("finds a key's changed %s", async (_, sql) => {
    tamper(sql);
    expect(fields(await audit())).toEqual(["key"]);
  });

  test.each([
    ["amount", "UPDATE ledger_hold SET amount = 29"],
    ["key", "UPDATE ledger_hold SET key_id = 'key_b'"],
    ["check time", "UPDATE ledger_hold SET check_at = 1"],
    ["extensions", "UPDATE ledger_hold SET extensions = 0"],
    ["row, gone", "DELETE FROM ledger_hold"],
    [
      "row, invented",
      "INSERT INTO ledger_hold VALUES (1, 'hold_aaa', 60, 'text', 'key_a', 'req', 1, 1, 0)",
    ],
  ])("finds an open hold's changed %s", async (_, sql) => {
    tamper(sql);
    expect(fields(await audit())).toEqual(["hold"]);
  });

  test("finds a refund of more than its charge, and of no charge", async () => {
    const generous: Fold = (view, operation, moment) => {
      const recorded = (id: string) => {
        const entry = view.recorded(id);
        return entry && { ...entry, spentDelta: 20n };
      };
      const isRefund = operation.kind === "refund";
      return fold(isRefund ? { ...view, recorded } : view, operation, moment);
    };
    const wrong = createSqliteLedger(db, generous);
    const settle = { kind: "settle", holdId: "hold_bbb", amount: 5n } as const;
    const refund = { kind: "refund", holdId: "hold_bbb", entry: 6, refundId: "r" } as const;
    const outcomes = await wrong.apply(usd, [settle, { ...refund, amount: 6n }], now + 2);
    expect(outcomes).toMatchObject([{ charged: 5n }, { kind: "refunded", amount: 6n }]);
    expect(await audit()).toEqual([
      { field: "refund", recorded: "6 of entry 6", computed: "settle 5", entryNumber: 7 },
    ]);
    tamper("DELETE FROM ledger_entry WHERE n = 6");
    expect(fields(await audit())).toContain("refund");
  });

  test("finds more taken back than was granted, of no grant, and of one that came later", async () => {
    const generous: Fold = (view, operation, moment) => {
      const recorded = (id: string) => {
        const entry = view.recorded(id);
        return entry?.kind === "grant" ? { ...entry, amount: 1_000n } : entry;
      };
      const isBack = operation.kind === "takeBack";
      return fold(isBack ? { ...view, recorded } : view, operation, moment);
    };
    const wrong = createSqliteLedger(db, generous);
    const back = { kind: "takeBack", grantId: "small", entry: 6, takeBackId: "t" } as const;
    await wrong.apply(usd, [{ kind: "grant", grantId: "small", amount: 5n }], now + 2);
    expect(await wrong.apply(usd, [{ ...back, amount: 6n }], now + 2)).toMatchObject([
      { kind: "takenBack", amount: 6n },
    ]);
    expect(await audit()).toEqual([
      ...[{ field: "granted", recorded: "6 taken back of entry 6", computed: "grant 5" }].map(
        (one) => ({ ...one, entryNumber: 7 }),
      ),
    ]);
    for (const record of ["{}", '{"takeBackOf":3}', '{"takeBackOf":8}', "no JSON"]) {
      tamper(`UPDATE ledger_entry SET ref = 't' || char(10) || '${record}' WHERE n = 7`);
      expect(fields(await audit()), record).toEqual(["chain", "granted"]);
    }
  });

  test("finds a deleted entry, in the middle and at the end", async () => {
    tamper("DELETE FROM ledger_entry WHERE n = 3");
    const found = await audit();
    expect(found).toContainEqual({
      field: "sequence",
      recorded: "4",
      computed: "3",
      entryNumber: 4,
    });
    expect(fields(found)).toContain("chain");
    tamper("DELETE FROM ledger_entry WHERE n = 5");
    expect(await audit()).toContainEqual(
      expect.objectContaining({ field: "sequence", entryNumber: 0 }),
    );
  });

  test("finds two entries that changed places", async () => {
    tamper(`UPDATE ledger_entry SET n = 99 WHERE n = 2; UPDATE ledger_entry SET n = 2 WHERE n = 4;
      UPDATE ledger_entry SET n = 4 WHERE n = 99`);
    const found = await audit();
    const chain = found.filter(({ field }) => field === "chain").map((d) => d.entryNumber);
    expect(chain).toEqual([2, 3, 4, 5]);
    expect(fields(found)).toContain("hold");
  });

  test("finds an invented entry behind the last", async () => {
    tamper(`INSERT INTO ledger_entry
      SELECT wallet, 6, 'grant:more', 'grant', '', '', 500, 500, 0, 0, '', at, 0, hash
      FROM ledger_entry WHERE n = 5`);
    expect(fields(await audit())).toEqual(["chain", "free", "granted", "sequence"]);
  });

  test("finds an entry that was moved here from another wallet", async () => {
    const other = { accountId: "acct_b", unit: "usd_micros" } as const;
    await store.apply(other, [{ kind: "grant", grantId: "g", amount: 500n }], now);
    tamper("UPDATE ledger_wallet SET account_id = 'acct_c' WHERE account_id = 'acct_b'");
    expect(fields(await audit())).toEqual(["chain"]);
  });

  test("finds what is left of a wallet that was taken away", async () => {
    tamper("DELETE FROM ledger_wallet");
    expect(await audit()).toEqual([
      {
        field: "sequence",
        recorded: "no wallet",
        computed: "5 entries, 1 open holds",
        entryNumber: 0,
      },
    ]);
  });

  test("reads journals longer than a page, and nothing that came after it began", async () => {
    const grants = Array.from({ length: 200 }, (_, i) => i);
    for (let round = 0; round < 11; round++) {
      const operations = grants.map(
        (i) => ({ kind: "grant", grantId: `g${round}.${i}`, amount: 1n }) as const,
      );
      await store.apply(usd, operations, now + 2);
    }
    const count = { entries: 0 };
    for await (const snapshot of store.snapshots("acct_a")) {
      await store.apply(usd, [{ kind: "grant", grantId: "late", amount: 1n }], now + 3);
      for await (const difference of auditWallet(snapshot, count)) {
        expect(difference).toBeUndefined();
      }
    }
    expect(count.entries).toBe(5 + 11 * 200);
  });
});
