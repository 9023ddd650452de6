import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { openSqlite, type SqliteDatabase } from "#kit/store/sqlite.ts";
import type { SqlTransaction } from "#kit/store/sqlite-transaction.ts";
import { newestMovedAt } from "../../services/billing/base/limits.ts";
import { noPeriods } from "../../services/billing/base/periods.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { Change } from "../../services/billing/ledger/change.ts";
import { fold } from "../../services/billing/ledger/ledger.ts";
import type { Operation } from "../../services/billing/ledger/operations.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import { createSqliteLedger } from "../../services/billing/ledger/store-sqlite.ts";
import type { KeyCounter, KeyTotals, WalletRef } from "../../services/billing/ledger/wallet.ts";
import { sqliteFiles } from "../support/sqlite-files.ts";

const { newFile, connect } = sqliteFiles();

const now = Date.UTC(2026, 0, 15, 12);
const usd = { accountId: "acct_a", unit: "usd_micros" } as const;
const other = { accountId: "acct_b", unit: "usd_micros" } as const;

const grant = (grantId: string): Operation => ({ kind: "grant", grantId, amount: 1_000n });
const reserve = (holdId: string): Operation => {
  const content = { holdKind: "text", keyId: "key_a", ref: "req", checkAt: now } as const;
  return { kind: "reserve", holdId, amount: 10n, ...content };
};
const settle = (holdId: string): Operation => ({ kind: "settle", holdId, amount: 4n });
const extend = (holdId: string): Operation => {
  return { kind: "extend", holdId, step: 1, checkAt: now + 1 };
};

/** One of each: a hold that ends, one that is extended, and one that stays as it is. */
const some = (name: string): Operation[] => [
  grant(`grant_${name}`),
  reserve(`hold_${name}_1`),
  reserve(`hold_${name}_2`),
  reserve(`hold_${name}_3`),
  settle(`hold_${name}_1`),
  extend(`hold_${name}_2`),
];

async function opened(db: SqliteDatabase): Promise<LedgerStore> {
  const store = createSqliteLedger(db);
  await store.open();
  return store;
}

const newestIn = (db: SqliteDatabase) =>
  Number(db.get("SELECT count(*) AS n FROM ledger_newest")?.n);

/** The figures and open holds of a wallet, after an audit found no fault in it. */
async function soundState(store: LedgerStore, ref: WalletRef) {
  for await (const snapshot of store.snapshots(ref.accountId)) {
    for await (const found of auditWallet(snapshot, { entries: 0 })) expect(found).toBeUndefined();
  }
  const { free, held, spent, n } = await store.wallet(ref);
  const { items } = await store.holds({ accountId: ref.accountId, limit: 99 });
  const holds = items.map(({ holdId, extensions }) => `${holdId} ${extensions}`).sort();
  return { free, held, spent, n, holds };
}

const afterSome = (name: string) => {
  const holds = [`hold_${name}_2 1`, `hold_${name}_3 0`];
  return { free: 976n, held: 20n, spent: 4n, n: 6, holds };
};

describe("newest entries", () => {
  test.each<[string, (store: LedgerStore) => unknown]>([
    ["a wallet", (store) => store.wallet(usd)],
    ["holds that are due", (store) => store.dueHolds({ now, limit: 9 })],
    ["open holds", (store) => store.holds({ limit: 9 })],
    ["the oldest hold", (store) => store.oldestHold()],
    ["counters of keys", (store) => store.keyCounters(usd, ["key_a"])],
    ["entries", (store) => store.entries(usd, { limit: 9 })],
    ["snapshots", (store) => soundState(store, usd)],
  ])("move to the journal before a reader of it comes: %s", async (_, read) => {
    const db = connect(await newFile());
    const store = await opened(db);
    await store.apply(usd, some("aaa"), now);
    expect(newestIn(db)).toBe(6);
    await read(store);
    expect(newestIn(db)).toBe(0);
    expect(await soundState(store, usd)).toEqual(afterSome("aaa"));
  });

  test("are never more than a move takes", async () => {
    const db = connect(await newFile());
    const store = await opened(db);
    for (let i = 0; i < newestMovedAt - 1; i++) await store.apply(usd, [grant(`g${i}`)], now);
    expect(newestIn(db)).toBe(newestMovedAt - 1);
    await store.apply(usd, [grant("last")], now);
    expect(newestIn(db)).toBe(0);
  });

  test("of a process that ended are there for the next one", async () => {
    const file = await newFile();
    {
      using first = openSqlite(file);
      await (await opened(first)).apply(usd, some("aaa"), now);
    }
    const db = connect(file);
    const store = await opened(db);
    expect(newestIn(db)).toBe(0);
    expect(await soundState(store, usd)).toEqual(afterSome("aaa"));
    expect(await store.apply(usd, [settle("hold_aaa_1")], now)).toMatchObject([{ replayed: true }]);
  });

  test("of another process count at once", async () => {
    const file = await newFile();
    const [one, two] = [await opened(connect(file)), await opened(connect(file))];
    await one.apply(usd, some("aaa"), now);
    await two.apply(usd, [settle("hold_aaa_2"), ...some("bbb")], now);
    expect(await one.apply(usd, [settle("hold_aaa_2")], now)).toMatchObject([{ replayed: true }]);
    expect(await one.apply(usd, [settle("hold_bbb_2")], now)).toMatchObject([{ replayed: false }]);
    expect(await soundState(two, usd)).toMatchObject({ n: 14, spent: 16n, held: 20n });
  });

  test("are all there after a move that failed, whichever of its statements did", async () => {
    let statements = 0;
    for (let failing = 1; failing <= statements + 1; failing++) {
      const file = await newFile();
      const db = connect(file);
      statements = 0;
      const counting = (tx: SqlTransaction): SqlTransaction => ({
        ...tx,
        get othersVersion() {
          return tx.othersVersion;
        },
        run(sql, ...values) {
          statements++;
          if (statements === failing) throw new Error("no more");
          return tx.run(sql, ...values);
        },
      });
      let isMoving = false;
      const watched: SqliteDatabase = {
        ...db,
        write: (work) => db.write((tx) => work(isMoving ? counting(tx) : tx)),
      };
      const store = await opened(watched);
      await store.apply(usd, some("aaa"), now);
      await store.apply(other, some("bbb"), now);
      isMoving = true;
      const moved = await store.oldestHold().then(
        () => true,
        () => false,
      );
      isMoving = false;
      expect(moved).toBe(failing > statements);
      expect(newestIn(db)).toBe(moved ? 0 : 12);
      // The process goes on, and so does one that takes its place.
      for (const next of [store, await opened(connect(file))]) {
        expect(await soundState(next, usd)).toEqual(afterSome("aaa"));
        expect(await soundState(next, other)).toEqual(afterSome("bbb"));
      }
    }
    expect(statements).toBeGreaterThan(6);
  });

  describe("of a wallet that contradicts its journal", () => {
    async function contradicting() {
      const file = await newFile();
      const db = connect(file);
      const writes = { count: 0 };
      const counting: SqliteDatabase = {
        ...db,
        write(work) {
          writes.count++;
          return db.write(work);
        },
      };
      const store = await opened(counting);
      await store.apply(usd, some("aaa"), now);
      await store.wallet(usd);
      await store.apply(usd, [grant("more")], now);
      await store.apply(other, some("bbb"), now);
      const shell = connect(file);
      // A person with a shell wrote an entry of the number that the newest one has.
      shell.run(
        `INSERT INTO ledger_entry SELECT wallet, 7, 'x', kind, hold_kind, key_id, 0, 0, 0, 0, ref, at, 0, hash
         FROM ledger_entry WHERE n = 1`,
      );
      const repair = () => {
        shell.run("DROP TRIGGER ledger_entry_no_delete");
        shell.run("DELETE FROM ledger_entry WHERE operation_id = 'x'");
      };
      return { db, store, writes, repair };
    }

    test("hold no other wallet up", async () => {
      const { db, store, repair } = await contradicting();
      await expect(store.apply(usd, [grant("again")], now)).rejects.toThrow(/UNIQUE/);
      await store.apply(other, [settle("hold_bbb_2")], now);
      expect(await soundState(store, other)).toMatchObject({ n: 7, spent: 8n });
      expect(newestIn(db)).toBe(1);
      repair();
      await store.apply(usd, [grant("again")], now);
      expect(await soundState(store, usd)).toMatchObject({ n: 8, free: 2_976n });
    });

    test("make no reader write, and move once the journal is repaired", async () => {
      const { db, store, writes, repair } = await contradicting();
      await store.wallet(other);
      expect(newestIn(db)).toBe(1);
      writes.count = 0;
      expect(await soundState(store, other)).toEqual(afterSome("bbb"));
      expect(writes.count).toBe(0);
      await store.apply(other, [settle("hold_bbb_2")], now);
      writes.count = 0;
      expect(await store.wallet(other)).toMatchObject({ spent: 8n });
      expect(writes.count).toBe(1);
      repair();
      expect(await store.wallet(usd)).toMatchObject({ n: 7 });
      expect(newestIn(db)).toBe(0);
    });
  });

  test.each<[string, (change: Change) => Partial<Change>]>([
    ["wallet", ({ wallet }) => ({ wallet: { ...wallet, free: wallet.free - 5_000n } })],
    ["key's month", (change) => withKey(change, { month: { ...noPeriods, spent: -1n } })],
    ["key's holds", (change) => withKey(change, { held: -1n })],
    ["key's day", (change) => withTotals(change, { day: { ...noPeriods, spent: -1n } })],
    ["key's week", (change) => withTotals(change, { week: { ...noPeriods, spent: -1n } })],
    ["key's total", (change) => withTotals(change, { ever: -1n })],
  ])("that would break the law are refused, and nothing changes: a %s", async (_, breaking) => {
    const db = connect(await newFile());
    const lending = createSqliteLedger(db, (view, operation, at) => {
      const { outcome, change } = fold(view, operation, at);
      if (!change) return { outcome };
      const broken = operation.kind === "reserve" ? breaking(change) : {};
      return { outcome, change: { ...change, ...broken } };
    });
    await lending.open();
    await lending.apply(usd, [grant("g")], now);
    await expect(lending.apply(usd, [reserve("hold_aaa_1")], now)).rejects.toThrow(/law/);
    expect(await soundState(await opened(db), usd)).toMatchObject({ n: 1, free: 1_000n });
    const unknown = { kind: "settle", holdId: "hold_aaa_1", amount: 1n } as const;
    expect(await lending.apply(usd, [unknown], now)).toMatchObject([
      { kind: "refused", reason: ErrorReason.HOLD_NOT_FOUND },
    ]);
  });
});

function withKey({ key }: Change, changed: Partial<KeyCounter>): Partial<Change> {
  expect(key?.totals).toBeDefined();
  return key ? { key: { ...key, ...changed } } : {};
}

function withTotals(change: Change, changed: Partial<KeyTotals>): Partial<Change> {
  const totals = change.key?.totals;
  return totals ? withKey(change, { totals: { ...totals, ...changed } }) : withKey(change, {});
}
