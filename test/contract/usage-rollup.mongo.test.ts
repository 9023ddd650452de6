import { expect, test } from "vitest";
import type { Database } from "#kit/store/database.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createLedgerStore, createUsageStore } from "../../services/billing/index.ts";
import {
  ledgerMongoSchema,
  usageMongoIndexes,
} from "../../services/billing/ledger/store-mongo-schema.ts";
import { countEntries } from "../../services/billing/usage/count-entries.ts";
import { entriesBetween } from "../../services/billing/usage/usage-counting.ts";
import { describeMongo } from "../support/mongo.ts";
import { billingWorld } from "./ledger.world.ts";
import { checkAll } from "./usage-rollup.checks.ts";
import { usageRollupContract } from "./usage-rollup.suite.ts";
import { accountId, randomRequests, type Spent, seeded, type World } from "./usage-rollup.world.ts";

await describeMongo(
  "on MongoDB",
  (mongo) => {
    usageRollupContract(async () => {
      const name = mongo.newName();
      return () => ({ kind: "mongodb", mongo: mongo.connect(name) });
    });

    test("totals of keys and the rollup by upstream are made of the journal where releases without them have counted", async () => {
      const database: Database = { kind: "mongodb", mongo: mongo.connect(mongo.newName()) };
      await using world = await billingWorld(database);
      const spent = await randomRequests(world, seeded(17), 30);
      await countAsBefore(database);
      expect(await keyTotals(world)).toEqual(totalsOf(spent));
      // A replica of the older release counts too while this one serves.
      for (const seed of [18, 19]) {
        spent.push(...(await randomRequests(world, seeded(seed), 10)));
        await countAsBefore(database);
        spent.push(...(await randomRequests(world, seeded(seed + 10), 5)));
        expect(await keyTotals(world)).toEqual(totalsOf(spent));
      }
      await checkAll(world, spent);
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const judged = { ...ledgerMongoSchema, indexes: usageMongoIndexes };
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(judged);
      expect(shapes.length).toBeGreaterThan(3);
      expect({ unserved, unused, scans }).toEqual({ unserved: [], unused: [], scans: [] });
    });
  },
  { inTurn: true },
);

/** Counts the USD wallet's journal to its end, without the totals of keys and the rollup by upstream. */
async function countAsBefore(database: Database): Promise<void> {
  const wallet = { accountId, unit: "usd_micros" } as const;
  const [store, usage] = [createLedgerStore(database), createUsageStore(database)];
  const { n: last } = await store.wallet(wallet);
  const cursor = await usage.cursor(wallet);
  const entries = await entriesBetween(store, wallet, cursor.n, last);
  const counted = countEntries(wallet, cursor, entries, last);
  const { keysN, servedN } = cursor;
  await usage.count(wallet, cursor, {
    ...counted,
    ...{ keySteps: [], servedSteps: [], cursor: { ...counted.cursor, keysN, servedN } },
  });
}

const keyIds = ["key_a", "key_b", "key_c"];

async function keyTotals(world: World) {
  const { keys } = await world.billing.getKeyUsage({ accountId, keyIds });
  return keys.map(({ spent }) => spent);
}

function totalsOf(spent: readonly Spent[]): bigint[] {
  return keyIds.map((keyId) =>
    spent
      .filter((one) => one.unit === Unit.USD_MICROS && one.keyId === keyId)
      .reduce((all, { amount }) => all + amount, 0n),
  );
}
