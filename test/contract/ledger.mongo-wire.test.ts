import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { serverSelectionTimeoutMs, socketTimeoutMs } from "#kit/store/mongo/limits.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { Operation } from "../../services/billing/ledger/operations.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";
import { createMongoLedger } from "../../services/billing/ledger/store-mongo.ts";
import { ledgerCollections } from "../../services/billing/ledger/store-mongo-schema.ts";
import { chanceOf } from "../support/chance.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { promptly } from "../support/promptly.ts";
import { until } from "../support/until.ts";
import { say } from "./ledger.model.ts";
import { runSequences } from "./ledger.sequences.ts";

const { wallets, journal } = ledgerCollections;
const wallet = { accountId: "acct_a", unit: "credits" } as const;
const name = "acct_a/credits";
const now = Date.UTC(2026, 0, 15, 12);

await describeMongo("a ledger on a bad wire", (mongo) => {
  let database: string;
  let wire: MongoWire;
  let store: LedgerStore;
  let other: LedgerStore;

  beforeEach(async () => {
    database = mongo.newName();
    other = createMongoLedger(mongo.connect(database));
    await other.open();
    wire = await openMongoWire(mongo.url);
    store = createMongoLedger(mongo.connect(database, { url: wire.url }));
    await apply(grant("start", 1_000n));
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  describe("an answer that was lost", () => {
    test.each<[string, "insert" | "update", string]>([
      ["of a wallet's first write", "insert", "acct_b"],
      ["of a later one", "update", "acct_a"],
    ])("%s: done once, and told as new", async (_, command, accountId) => {
      loseOnce("lost reply", command, wallets);
      const operations = [grant("g", 7n), grant("g", 7n), grant("h", 1n), release("hold_none")];
      const outcomes = await store.apply({ accountId, unit: "credits" }, operations, now);
      const refused = "refused HOLD_NOT_FOUND";
      expect(outcomes.map(say)).toEqual(["granted", "granted, again", "granted", refused]);
      await expectSound();
    });

    test("of a hold and its end: each told as it was told first", async () => {
      loseOnce("lost reply", "update", wallets);
      const operations = [reserve("hold_aaa", 400n), release("hold_aaa")];
      const outcomes = await store.apply(wallet, operations, now);
      expect(outcomes.map(say)).toEqual(["open 400", "released 0"]);
      await expectSound();
    });

    test("of a refusal and what would have prevented it: the refusal stands", async () => {
      loseOnce("lost reply", "update", wallets);
      const operations = [reserve("hold_aaa", 1_500n), grant("late", 1_000n)];
      const outcomes = await store.apply(wallet, operations, now);
      expect(outcomes.map(say)).toEqual(["refused INSUFFICIENT_CREDITS", "granted"]);
      await expectSound();
    });

    test("a request that never arrived is made", async () => {
      loseOnce("lost request", "update", wallets);
      expect(await apply(reserve("hold_aaa", 400n))).toBe("open 400");
      expect(await apply(reserve("hold_bbb", 700n))).toBe("refused INSUFFICIENT_CREDITS");
      await expectSound();
    });

    test("of a read: read again", async () => {
      loseOnce("lost reply", "find", journal);
      expect(await apply(reserve("hold_aaa", 400n))).toBe("open 400");
      await expectSound();
    });

    test("of a copy to the journal: copied once, and the tail goes", async () => {
      loseOnce("lost reply", "insert", journal);
      await applyMany(64, "first");
      await until("the tail to be moved", async () => (await tail()).length === 0);
      expect(await mongo.raw(database).collection(journal).countDocuments()).toBe(65);
      await expectSound();
    });
  });

  describe("many wallets at once", () => {
    const many = Array.from({ length: 20 }, (_, i) => `acct_${i + 1}`);
    const all = (operation: Operation) =>
      Promise.allSettled(
        many.map(async (accountId) => {
          const [outcome] = await store.apply({ accountId, unit: "credits" }, [operation], now);
          return say(outcome);
        }),
      );
    const each = (value: string) => many.map(() => ({ status: "fulfilled", value }));

    test("an answer for all of them that was lost: done once, and told as new", async () => {
      expect(await all(grant("g", 100n))).toEqual(each("granted"));
      loseOnce("lost reply", "update", wallets);
      expect(await all(reserve("hold_aaa", 40n))).toEqual(each("open 40"));
      loseOnce("lost reply", "find", journal);
      expect(await all(reserve("hold_bbb", 40n))).toEqual(each("open 40"));
      expect(await all(reserve("hold_bbb", 40n))).toEqual(each("open 40, again"));
      await expectSound();
    });

    test("one that cannot be written stops no other", async () => {
      await all(grant("g", 100n));
      const raw = mongo.raw(database).collection<{ _id: string }>(wallets);
      await raw.updateOne({ _id: "acct_3/credits" }, { $set: { holds: "none" } });
      const outcomes = await all(reserve("hold_aaa", 40n));
      expect(outcomes[2]).toMatchObject({ status: "rejected" });
      expect(outcomes.toSpliced(2, 1)).toEqual(each("open 40").slice(1));
    });
  });

  test("without a journal to be reached, 256 entries wait in the wallet; then it is unavailable", async () => {
    store = createMongoLedger(mongo.connect(database, { url: wire.url }));
    wire.rule = (command) => (command.insert === journal ? "lost request" : "pass");
    for (const batch of ["a", "b", "c"]) await applyMany(64, batch);
    await applyMany(63, "d");
    expect(await tail()).toHaveLength(256);
    // Each reset also breaks the neighbouring connections. Only the client that is to give up has less time for its attempts.
    store = createMongoLedger(mongo.connect(database, { url: wire.url, clock: quick }));
    await expect(apply(grant("more", 1n))).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
      metadata: { retry_after_ms: "1000" },
    });
    // All acknowledged entries are stored and can be read.
    await expectSound(256);
    const newest = await store.entries(wallet, { limit: 2, below: 200 });
    expect(newest.map(({ n }) => n)).toEqual([199, 198]);
    wire.rule = () => "pass";
    expect(await apply(grant("more", 1n))).toBe("granted");
    await expectSound(257);
  });

  test("a server that is away is SERVICE_UNAVAILABLE, in reads too; back again, it is used", async () => {
    store = createMongoLedger(mongo.connect(database, { url: wire.url, clock: leaping }));
    wire.rule = () => "lost request";
    const away = { reason: ErrorReason.SERVICE_UNAVAILABLE };
    await expect(apply(grant("g", 1n))).rejects.toMatchObject(away);
    await expect(store.wallet(wallet)).rejects.toMatchObject(away);
    await expect(store.dueHolds({ now, limit: 1 })).rejects.toMatchObject(away);
    wire.rule = () => "pass";
    expect(await apply(grant("g", 1n))).toBe("granted");
  });

  test("a server that falls silent is SERVICE_UNAVAILABLE within some seconds", async () => {
    wire.rule = () => new Promise(() => undefined);
    const away = { reason: ErrorReason.SERVICE_UNAVAILABLE };
    await promptly(socketTimeoutMs + serverSelectionTimeoutMs, () =>
      expect(apply(grant("g", 1n))).rejects.toMatchObject(away),
    );
  });

  test("an entry that moves to the journal between two reads is not overlooked", async () => {
    const operation = reserve("hold_aaa", 400n);
    await other.apply(wallet, [operation], now);
    const held = Promise.withResolvers<Fate>();
    let reads = 0;
    wire.rule = ({ find }) => (find && ++reads === 2 ? held.promise : "pass");
    // A client without a memory, which reads wallet and journal.
    store = createMongoLedger(mongo.connect(database, { url: wire.url }));
    const outcome = apply(operation);
    await until("the first read", () => reads === 2);
    await moveTail();
    held.resolve("pass");
    expect(await outcome).toBe("open 400, again");
    await expectSound();
  });

  test("an entry that its own process moves meanwhile is not overlooked", async () => {
    const operation = reserve("hold_aaa", 400n);
    await apply(operation);
    const held = Promise.withResolvers<Fate>();
    const close = `${name}:hold_aaa:close`;
    let isHeld = false;
    wire.rule = ({ find, filter }) => {
      if (find !== journal || !filter._id.$in.includes(close)) return "pass";
      isHeld = true;
      return held.promise;
    };
    // The hold is in the tail when the batch begins. When the batch is applied, the tail has moved.
    const fill = applyMany(62, "x");
    const again = apply(operation);
    await fill;
    await until("the read", () => isHeld);
    await until("the tail to be moved", async () => (await tail()).length === 0);
    held.resolve("pass");
    expect(await again).toBe("open 400, again");
    await expectSound();
  });

  test("what is in the journal alone is known to a client that remembers nothing", async () => {
    await apply(reserve("hold_aaa", 400n));
    await moveTail();
    store = createMongoLedger(mongo.connect(database));
    expect(await apply(reserve("hold_aaa", 400n))).toBe("open 400, again");
    expect(await apply(reserve("hold_aaa", 401n))).toBe("refused OPERATION_MISMATCH");
    expect(await apply(grant("start", 1_000n))).toBe("granted, again");
    await expectSound();
  });

  test("an entry of another hand in the journal: nothing leaves the tail, and the audit tells", async () => {
    const raw = mongo.raw(database).collection<{ _id: string }>(journal);
    await raw.insertOne({ _id: `${name}:grant:other`, n: 2, wallet: name } as never);
    for (const batch of ["a", "b", "c"]) await applyMany(64, batch);
    await applyMany(63, "d");
    await expect(apply(grant("more", 1n))).rejects.toThrow(/has other entries than its tail/);
    expect(await tail()).toHaveLength(256);
    const sequence = expect.objectContaining({ field: "sequence", entryNumber: 2 });
    expect(await differences()).toContainEqual(sequence);
  });

  test("a wallet that breaks its law is not built upon", async () => {
    const raw = mongo.raw(database).collection<{ _id: string }>(wallets);
    await raw.updateOne({ _id: name }, { $set: { free: 5_000n } });
    store = createMongoLedger(mongo.connect(database));
    await expect(apply(reserve("hold_aaa", 4_000n))).rejects.toThrow(/breaks its law/);
    expect(await differences()).not.toEqual([]);
  });

  test("random sequences agree with the model, with any request or reply lost", async () => {
    const seed = Math.floor(Math.random() * 1_000_000_000);
    const chance = chanceOf(seed);
    let lost = 0;
    wire.rule = () => {
      if (!chance.likely(4)) return "pass";
      lost++;
      return chance.likely(50) ? "lost reply" : "lost request";
    };
    const options = { seed: seed - (seed % 500) + 2, sequences: 12 };
    const run = await runSequences(store, undefined, options);
    expect(run.difference, `seed ${seed}`).toBeUndefined();
    expect(lost).toBeGreaterThan(10);
  });

  async function apply(operation: Operation): Promise<string> {
    return say((await store.apply(wallet, [operation], now))[0]);
  }

  async function applyMany(count: number, prefix: string): Promise<void> {
    const grants = Array.from({ length: count }, (_, i) => grant(`${prefix}${i}`, 1n));
    await store.apply(wallet, grants, now);
  }

  function loseOnce(fate: Fate, command: string, collection: string): void {
    let isLost = false;
    wire.rule = (sent) => {
      if (isLost || sent[command] !== collection) return "pass";
      isLost = true;
      return fate;
    };
  }

  async function tail(): Promise<unknown[]> {
    const raw = mongo.raw(database).collection<{ _id: string; tail: unknown[] }>(wallets);
    return (await raw.findOne({ _id: name }))?.tail ?? [];
  }

  /** Lets the other client fill the tail, so that it is moved to the journal. */
  async function moveTail(): Promise<void> {
    const grants = Array.from({ length: 64 }, (_, i) => grant(`fill${i}`, 1n));
    await other.apply(wallet, grants, now);
    await until("the tail to be moved", async () => (await tail()).length === 0);
  }

  async function differences(): Promise<unknown[]> {
    const found: unknown[] = [];
    for await (const snapshot of other.snapshots(undefined)) {
      for await (const one of auditWallet(snapshot, { entries: 0 })) found.push(one);
    }
    return found;
  }

  async function expectSound(entries?: number): Promise<void> {
    const count = { entries: 0 };
    for await (const snapshot of other.snapshots(undefined)) {
      for await (const found of auditWallet(snapshot, count)) expect(found).toBeUndefined();
    }
    if (entries !== undefined) expect(count.entries).toBe(entries);
  }
});

/** A time that jumps, so that pauses and waits are over at once. */
const leapingTime = (() => {
  let time = 0;
  return () => {
    time += 1_000;
    return time;
  };
})();
const leaping: Clock = {
  now: leapingTime,
  steady: leapingTime,
  sleep: async () => undefined,
};

/** Ten times as fast as the system's clock. */
const quick: Clock = {
  ...systemClock,
  steady: () => 10 * systemClock.steady(),
  sleep: (ms, signal) => systemClock.sleep(ms / 10, signal),
};

function grant(grantId: string, amount: bigint): Operation {
  return { kind: "grant", grantId, amount };
}

function release(holdId: string): Operation {
  return { kind: "release", holdId };
}

function reserve(holdId: string, amount: bigint): Operation {
  const content = { holdKind: "text", keyId: "key_a", ref: "req", checkAt: now + 60_000 } as const;
  return { kind: "reserve", holdId, amount, ...content };
}
