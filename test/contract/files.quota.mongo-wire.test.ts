import { afterEach, beforeEach, expect, test } from "vitest";
import { migrate } from "#kit/store/mongo/migrate.ts";
import { tailCopiedAt } from "../../services/media/files/limits.ts";
import type { QuotaStore } from "../../services/media/files/quota.ts";
import { createMongoQuota } from "../../services/media/files/quota-mongo.ts";
import {
  quotaCollections,
  quotaMongoSchema,
} from "../../services/media/files/quota-mongo-wallet.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { auditQuota } from "./files.quota.mongo-audit.ts";

const accountId = "acct_a";
const charge = (chargeId: string) => ({ accountId, chargeId });
const t0 = Date.UTC(2026, 0, 15, 12);

await describeMongo("the quota on a bad wire", (mongo) => {
  let wire: MongoWire;
  let quota: QuotaStore;
  let other: QuotaStore;
  let name: string;

  beforeEach(async () => {
    name = mongo.newName();
    const db = mongo.connect(name);
    await migrate(db, [quotaMongoSchema]);
    other = createMongoQuota(db);
    wire = await openMongoWire(mongo.url);
    quota = createMongoQuota(mongo.connect(name, { url: wire.url }));
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  /** Sets the treatment of the next such command. `meanwhile` runs before it. */
  function next(
    command: string,
    collection: string,
    fate: Fate,
    meanwhile: () => Promise<unknown> = async () => {},
  ): void {
    let isOver = false;
    wire.rule = async (sent) => {
      if (isOver || sent[command] !== collection) return "pass";
      isOver = true;
      await meanwhile();
      return fate;
    };
  }

  async function expectExact(
    usedBytes: number,
    reservedBytes: number,
    keptBytes = 0,
  ): Promise<void> {
    const { told, counted } = await auditQuota(mongo.raw(name), accountId);
    expect(told).toEqual({ usedBytes, reservedBytes, keptBytes });
    expect(counted).toEqual(told);
  }

  test.each(["lost request", "lost reply"] as const)(
    "each step once, its write a %s",
    async (fate) => {
      next("insert", quotaCollections.wallets, fate);
      expect(await quota.reserve(charge("a"), 60, 100)).toBe("reserved");
      await expectExact(0, 60);
      next("update", quotaCollections.wallets, fate);
      expect(await quota.reserve(charge("b"), 40, 100)).toBe("reserved");
      await expectExact(0, 100);
      next("update", quotaCollections.wallets, fate);
      expect(await quota.commit(charge("a"))).toBe(true);
      await expectExact(60, 40);
      next("update", quotaCollections.wallets, fate);
      await quota.keep(charge("a"), t0);
      await expectExact(0, 40, 60);
      next("update", quotaCollections.wallets, fate);
      await quota.release(charge("a"), t0);
      await expectExact(0, 40);
    },
  );

  test("who lost his answer and his place to others knows that too", async () => {
    await other.reserve(charge("kept"), 40, 100);
    next("update", quotaCollections.wallets, "lost request", async () => {
      await other.reserve(charge("theirs"), 40, 100);
    });
    expect(await quota.reserve(charge("ours"), 40, 100)).toBe("full");
    await expectExact(0, 80);
  });

  test("a reservation that arrives after its release counts for nothing", async () => {
    await other.reserve(charge("kept"), 40, 100);
    next("update", quotaCollections.wallets, "pass", async () => {
      await other.release(charge("late"), t0);
    });
    expect(await quota.reserve(charge("late"), 40, 100)).toBe("released");
    await expectExact(0, 40);
  });

  test("a wallet's beginning that arrives late does not begin it again", async () => {
    next("insert", quotaCollections.wallets, "pass", async () => {
      await other.reserve(charge("theirs"), 70, 100);
    });
    expect(await quota.reserve(charge("ours"), 40, 100)).toBe("full");
    await expectExact(0, 70);
  });

  /** All at once, so that it takes few round trips and the held command is not delayed for long. */
  const many = <T>(one: (i: number) => Promise<T>): Promise<T[]> =>
    Promise.all(Array.from({ length: tailCopiedAt }, (_, i) => one(i)));
  const fillTail = () => many((i) => other.reserve(charge(`c${i}`), 1, 1_000));

  /** Releases unknown charges, until the next operation copies the tail. */
  const lengthenTail = async () => {
    while ((await auditQuota(mongo.raw(name), accountId)).tail < tailCopiedAt) {
      await other.release(charge(`n${spare++}`), t0);
    }
  };
  let spare = 0;

  test("copying a tail without an answer, and half of it", async () => {
    await fillTail();
    next("insert", quotaCollections.charges, "lost reply");
    expect(await quota.reserve(charge("a"), 1, 1_000)).toBe("reserved");
    const audit = await auditQuota(mongo.raw(name), accountId);
    expect(audit.tail).toBe(1);
    await expectExact(0, tailCopiedAt + 1);
  });

  test.each(["insert", "update"] as const)(
    "a copy whose %s arrives late does not undo what came after it",
    async (command) => {
      await fillTail();
      // The late command is an update where a charge of the tail has its document already.
      if (command === "update") {
        await other.reserve(charge("b"), 1, 1_000);
        await lengthenTail();
        await other.release(charge("b"), t0);
        await lengthenTail();
      }
      let isLate = false;
      next(command, quotaCollections.charges, "pass", async () => {
        isLate = true;
        // Another process copies the charges, uses them, releases half, and copies again.
        await many((i) => other.commit(charge(`c${i}`)));
        await many(async (i) => i % 2 === 0 && other.release(charge(`c${i}`), t0));
        await many((i) => other.reserve(charge(`d${i}`), 1, 1_000));
      });
      expect(await quota.reserve(charge("a"), 1, 1_000)).toBe("reserved");
      expect(isLate).toBe(true);
      await expectExact(tailCopiedAt / 2, tailCopiedAt + 1);
      const committed = await many((i) => quota.commit(charge(`c${i}`)));
      expect(committed).toEqual(committed.map((_, i) => i % 2 === 1));
      await expectExact(tailCopiedAt / 2, tailCopiedAt + 1);
    },
  );

  test("a charge that leaves its wallet between two looks is not missed", async () => {
    await other.reserve(charge("a"), 10, 1_000);
    const own = Object.values<unknown>(quotaCollections);
    let commands = 0;
    wire.rule = async (sent): Promise<Fate> => {
      const isOwn = own.includes(sent.find) || own.includes(sent.update);
      if (!isOwn || ++commands !== 2) return "pass";
      await fillTail();
      await other.reserve(charge("b"), 1, 1_000);
      return "pass";
    };
    expect(await quota.commit(charge("a"))).toBe(true);
    await expectExact(10, tailCopiedAt + 1);
  });
});
