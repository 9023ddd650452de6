import { expect, test } from "vitest";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { maxQuotaOperations, tailCopiedAt } from "../../services/media/files/limits.ts";
import type { QuotaStore } from "../../services/media/files/quota.ts";
import { createMongoQuota } from "../../services/media/files/quota-mongo.ts";
import {
  quotaCollections,
  quotaMongoSchema,
} from "../../services/media/files/quota-mongo-wallet.ts";
import { describeMongo } from "../support/mongo.ts";
import { auditQuota } from "./files.quota.mongo-audit.ts";
import { quotaContract } from "./files.quota.suite.ts";

const accountId = "acct_a";
const charge = (i: number) => ({ accountId, chargeId: `charge_${i}` });
const many = <T>(count: number, one: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: count }, (_, i) => one(i)));
const t0 = Date.UTC(2026, 0, 15, 12);

await describeMongo(
  "the quota in MongoDB",
  (mongo) => {
    const openAt = async (name: string): Promise<[QuotaStore, QuotaStore]> => {
      const [one, two] = [mongo.connect(name), mongo.connect(name)];
      await migrate(one, [quotaMongoSchema]);
      return [createMongoQuota(one), createMongoQuota(two)];
    };
    quotaContract(() => openAt(mongo.newName()));

    test("a wallet's document stays small, and what left it is known as before", async () => {
      const name = mongo.newName();
      const [quota, other] = await openAt(name);
      const count = 3 * tailCopiedAt;
      const biggest = tailCopiedAt + maxQuotaOperations;
      const steps: ((i: number) => Promise<unknown>)[] = [
        (i) => quota.reserve(charge(i), 10, 1_000_000),
        (i) => other.commit(charge(i)),
        async (i) => i % 3 === 0 && quota.release(charge(i), t0 + i),
        // All of it once more.
        (i) => other.reserve(charge(i), 10, 1_000_000),
        (i) => quota.commit(charge(i)),
      ];
      for (const step of steps) {
        await many(count, step);
        const audit = await auditQuota(mongo.raw(name), accountId);
        expect(audit.counted).toEqual(audit.told);
        expect(audit.tail).toBeLessThan(biggest);
      }
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: count * 10 * (2 / 3),
        reservedBytes: 0,
        keptBytes: 0,
      });
      const { states } = await auditQuota(mongo.raw(name), accountId);
      expect(states.size).toBe(count);
      for (let i = 0; i < count; i++) {
        expect(states.get(`charge_${i}`)).toBe(i % 3 === 0 ? "released" : "used");
      }
    });

    test("what was released is forgotten also where it is still in its wallet", async () => {
      const name = mongo.newName();
      const [quota] = await openAt(name);
      await many(10, (i) => quota.reserve(charge(i), 10, 1_000));
      await many(5, (i) => quota.release(charge(i), t0 + i));
      expect(await quota.forget(t0 + 3, 2)).toBe(2);
      expect(await quota.forget(t0 + 3, 2)).toBe(1);
      expect(await quota.forget(t0 + 3, 2)).toBe(0);
      const { told, counted, states } = await auditQuota(mongo.raw(name), accountId);
      expect(counted).toEqual(told);
      expect(told).toEqual({ usedBytes: 0, reservedBytes: 50, keptBytes: 0 });
      expect([...states.values()].filter((state) => state === "released")).toHaveLength(2);
    });

    test("nothing is built on a wallet that breaks its law", async () => {
      const name = mongo.newName();
      const [quota] = await openAt(name);
      await quota.reserve(charge(1), 10, 1_000);
      const wallets = mongo.raw(name).collection<{ _id: string }>(quotaCollections.wallets);
      await wallets.updateOne({ _id: accountId }, { $set: { reservedBytes: 9 } });
      await expect(quota.release(charge(1), t0)).rejects.toThrow("breaks its law");
      await wallets.updateOne({ _id: accountId }, { $set: { reservedBytes: 10 } });
      await quota.release(charge(1), t0);
      expect(await quota.usage(accountId)).toEqual({
        usedBytes: 0,
        reservedBytes: 0,
        keptBytes: 0,
      });
    });

    // This test is the last, because it checks the queries of the tests above.
    test("every query is served by a declared index, and every index serves one", async () => {
      const { shapes, unserved, unused, scans } = await mongo.judgeQueries(quotaMongoSchema);
      expect(shapes.length).toBeGreaterThan(5);
      expect(unserved).toEqual([]);
      expect(unused).toEqual([]);
      expect(scans).toEqual([]);
    });
  },
  { inTurn: true },
);
