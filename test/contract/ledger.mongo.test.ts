import type { Db } from "mongodb";
import { describe, expect, test } from "vitest";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { Operation } from "../../services/billing/ledger/operations.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import { createMongoLedger } from "../../services/billing/ledger/store-mongo.ts";
import {
  ledgerCollections,
  ledgerMongoSchema,
  usageMongoIndexes,
} from "../../services/billing/ledger/store-mongo-schema.ts";
import { describeMongo } from "../support/mongo.ts";
import { until } from "../support/until.ts";
import { ledgerStoreContract } from "./ledger.suite.ts";

await describeMongo(
  "the ledger in MongoDB",
  (mongo) => {
    ledgerStoreContract(async () => {
      const name = mongo.newName();
      const stores = [
        createMongoLedger(mongo.connect(name)),
        createMongoLedger(mongo.connect(name)),
      ] as const;
      for (const store of stores) await store.open();
      return [...stores];
    });

    describe("the audit finds", () => {
      const { wallets, journal } = ledgerCollections;
      const name = "acct_a/usd_micros";
      const entry = (n: number) => ({ wallet: name, n });
      const set = (fields: object) => ({ $set: fields });
      type Tampering = (db: Db) => Promise<unknown>;
      const inWallet =
        (fields: object): Tampering =>
        (db) =>
          db.collection<Named>(wallets).updateOne({ _id: name }, set(fields));
      const inJournal =
        (n: number, fields: object): Tampering =>
        (db) =>
          db.collection(journal).updateOne(entry(n), set(fields));

      test.each<[string, Tampering]>([
        ["a balance", inWallet({ free: 1n })],
        ["a balance that is no number", inWallet({ free: "much" })],
        ["what was granted", inWallet({ granted: 1n })],
        ["the month's spend", inWallet({ "month.spent": 0n })],
        ["the number of entries", inWallet({ n: 70 })],
        ["the hash", inWallet({ h: "" })],
        ["a hold's amount", inWallet({ "holds.hold_open.amount": 1n })],
        ["a hold's check time", inWallet({ "holds.hold_open.checkAt": 1 })],
        ["a key's spend", inWallet({ "keys.key_a.spent": 0n })],
        ["an entry's amount in the tail", inWallet({ "tail.0.amount": 9n })],
        ["an entry that is gone from the tail", inWallet({ tail: [] })],
        ["an entry's amount in the journal", inJournal(3, { amount: 9n })],
        ["an entry's amount that is no whole number", inJournal(3, { amount: 0.5 })],
        ["an entry's reference", inJournal(2, { ref: "other" })],
        ["an entry's hash", inJournal(5, { h: "" })],
        ["an entry that is gone", (db) => db.collection(journal).deleteOne(entry(3))],
        ["the journal's last entry, gone", (db) => db.collection(journal).deleteOne(entry(64))],
        [
          "one entry too many",
          (db) => db.collection<Named>(journal).insertOne({ _id: `${name}:grant:x`, ...entry(99) }),
        ],
        ["a wallet that is gone", (db) => db.collection<Named>(wallets).deleteOne({ _id: name })],
      ])("%s", async (_, tamper) => {
        const database = mongo.newName();
        const store = createMongoLedger(mongo.connect(database));
        await store.open();
        const wallet = { accountId: "acct_a", unit: "usd_micros" } as const;
        const held = { kind: "reserve", holdKind: "text", keyId: "key_a", checkAt: 9 } as const;
        const operations: Operation[] = [
          { kind: "grant", grantId: "g", amount: 100n },
          { ...held, holdId: "hold_open", amount: 5n, ref: "a" },
          { ...held, holdId: "hold_done", amount: 5n, ref: "b" },
          { kind: "settle", holdId: "hold_done", amount: 4n },
          ...Array.from(
            { length: 60 },
            (_, i): Operation => ({ kind: "grant", grantId: `g${i}`, amount: 1n }),
          ),
        ];
        await store.apply(wallet, operations, 1);
        const raw = mongo.raw(database);
        await until("the first 64 to be in the journal", async () => {
          return (
            (await raw.collection<{ tail: unknown[] }>(wallets).findOne({}))?.tail.length === 0
          );
        });
        await store.apply(wallet, [{ kind: "grant", grantId: "last", amount: 1n }], 1);
        expect(await differences(store)).toEqual([]);
        await tamper(raw);
        expect(await differences(store)).not.toEqual([]);
      });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      // Usage has a suite of its own.
      const isUsage = ([name]: [string, unknown]) => name in usageMongoIndexes;
      const all = Object.entries(ledgerMongoSchema.indexes);
      const indexes = Object.fromEntries(all.filter((one) => !isUsage(one)));
      const judged = { ...ledgerMongoSchema, indexes };
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(judged);
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);

interface Named {
  _id: string;
}

async function differences(store: LedgerStore): Promise<unknown[]> {
  const found: unknown[] = [];
  for await (const snapshot of store.snapshots(undefined)) {
    for await (const one of auditWallet(snapshot, { entries: 0 })) found.push(one);
  }
  return found;
}
