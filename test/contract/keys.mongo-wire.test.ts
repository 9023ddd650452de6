import type { Document } from "mongodb";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { manualClock } from "#kit/time/clock.ts";
import { withRate } from "../../services/auth/account.ts";
import type { Key } from "../../services/auth/key.ts";
import { revisionLostMs } from "../../services/auth/limits.ts";
import type { AuthStore } from "../../services/auth/store.ts";
import { createMongoAuthStore } from "../../services/auth/store-mongo.ts";
import { authCollections } from "../../services/auth/store-mongo-docs.ts";
import { describeMongo } from "../support/mongo.ts";
import { type Fate, type MongoWire, openMongoWire } from "../support/mongo-wire.ts";
import { until } from "../support/until.ts";
import { digest, newAccount, newKey, t0 } from "./keys.shapes.ts";

const { keys, revision: revisions } = authCollections;

await describeMongo("keys on a bad wire", (mongo) => {
  let database: string;
  let wire: MongoWire;
  let store: AuthStore;
  let other: AuthStore;
  let isLost: boolean;

  beforeEach(async () => {
    database = mongo.newName();
    other = createMongoAuthStore(mongo.connect(database));
    await other.open();
    await other.createAccount(
      newAccount("a", { secret: "sa", operationId: "first", secretBrought: true }),
    );
    wire = await openMongoWire(mongo.url);
    store = createMongoAuthStore(mongo.connect(database, { url: wire.url }));
  });
  afterEach(() => wire[Symbol.asyncDispose]());

  const changes: Record<string, () => Promise<{ keyId: string }>> = {
    "an account": async () => {
      const { key, replayed } = await store.createAccount(
        newAccount("b", { secret: "sb", operationId: "second", secretBrought: true }),
      );
      expect(replayed).toBe(false);
      return key;
    },
    "a key": () => store.createKey(newKey("b", "acct_a", "sb")),
    "a rotation": () =>
      store.rotateKey({ keyId: "key_a", secret: digest("sb"), graceMs: 9, nowMs: t0 }),
    "an update": () => store.changeKey("key_a", (key) => ({ ...key, name: "told" })),
    "a suspension": async () => {
      const command = { accountId: "acct_a", suspended: true, nowMs: t0 };
      expect(await store.setAccountState(command)).toMatchObject({ suspendedAtMs: t0 });
      return { keyId: "key_a" };
    },
    "a change of an account": async () => {
      const changed = await store.changeAccount("acct_a", (account) => withRate(account, 7));
      expect(changed).toMatchObject({ requestsPerMinute: 7, rateIsSet: true });
      return { keyId: "key_a" };
    },
    "a closing": async () => {
      const command = { accountId: "acct_a", nowMs: t0 };
      expect(await store.beginClosing(command)).toMatchObject({ closingAtMs: t0, name: "" });
      return { keyId: "key_a" };
    },
    "a revocation": () => store.revokeKey({ keyId: "key_a", nowMs: t0 }),
  };
  const losses: [fate: Fate, command: string, collection: string][] = [
    ["lost reply", "update", revisions],
    ["lost reply", "insert", keys],
    ["lost reply", "update", keys],
    ["lost request", "update", keys],
    ["lost reply", "findAndModify", revisions],
  ];
  const makes = ["an account", "a key"];
  const writeOf = (what: string) => (makes.includes(what) ? "insert" : "update");
  const cases = Object.keys(changes).flatMap((what) =>
    losses
      .filter(([, command, where]) => where !== keys || command === writeOf(what))
      .map((loss) => [what, ...loss] as const),
  );

  test.each(cases)(
    "%s, %s of %s %s: done once, and told",
    async (what, fate, command, collection) => {
      const before = await other.revision();
      const keysBefore = (await other.listKeys("acct_a")).length;
      loseOnce(fate, command, collection);
      const { keyId } = (await changes[what]?.()) ?? { keyId: "" };
      expect(isLost).toBe(true);
      expect((await other.changesSince(before, 9))?.keyIds).toEqual([keyId]);
      expect(await other.listKeys("acct_a")).toHaveLength(keysBefore + (what === "a key" ? 1 : 0));
      const left = await find("sa");
      const account = await other.findAccount("acct_a");
      if (what === "a revocation") expect(left?.revokedAtMs).toBe(t0);
      else if (what === "an update") expect(left?.name).toBe("told");
      else if (what === "a closing") expect(account).toMatchObject({ closingAtMs: t0, name: "" });
      else if (what === "a change of an account") expect(account?.requestsPerMinute).toBe(7);
      else if (what === "a suspension") expect(account?.suspendedAtMs).toBe(t0);
      else expect((await find("sb"))?.keyId).toBe(keyId);
    },
  );

  describe("a process that died over its change", () => {
    test("what others changed is told at once; its revision is given up after a while", async () => {
      const clock = manualClock();
      const watching = createMongoAuthStore(mongo.connect(database, { clock }));
      const before = await other.revision();
      const lost = before + 1n;
      await mongo
        .raw(database)
        .collection<{ _id: string }>(revisions)
        .updateOne({ _id: "revision" }, { $set: { last: lost, pending: [lost] } });
      await other.revokeKey({ keyId: "key_a", nowMs: t0 });
      // The same change is answered again and again, because an earlier one may still come.
      const told = { revision: before, keyIds: ["key_a"] };
      expect(await watching.changesSince(before, 9)).toEqual(told);
      expect(await watching.changesSince(before, 9)).toEqual(told);
      await clock.advance(revisionLostMs);
      const after = { revision: lost + 1n, keyIds: ["key_a"] };
      expect(await watching.changesSince(before, 9)).toEqual(after);
      expect(await other.changesSince(lost + 1n, 9)).toMatchObject({ keyIds: [] });
    });

    test("one that was only slow is told after all", async () => {
      const clock = manualClock();
      const watching = createMongoAuthStore(mongo.connect(database, { clock }));
      const held = hold(({ insert }) => insert === keys);
      const slow = store.createKey(newKey("b", "acct_a", "sb"));
      await until("the insert", held.isHeld);
      await watching.revision();
      await clock.advance(revisionLostMs);
      const known = await watching.revision();
      expect(await watching.changesSince(known, 9)).toMatchObject({ keyIds: [] });
      held.release();
      const { keyId, revision } = await slow;
      expect(revision).toBeGreaterThan(known);
      expect((await watching.changesSince(known, 9))?.keyIds).toEqual([keyId]);
    });
  });

  test("a secret that two would give to one key at once goes in once", async () => {
    const rotation = { keyId: "key_a", secret: digest("sb"), graceMs: 9, nowMs: t0 };
    const held = hold(({ update }) => update === keys);
    const beaten = store.rotateKey(rotation);
    await until("the update", held.isHeld);
    const { former } = await other.rotateKey(rotation);
    held.release();
    await expect(beaten).rejects.toMatchObject({ reason: ErrorReason.OPERATION_CONFLICT });
    expect(await find("sb")).toMatchObject({ former });
  });

  test("a key that was looked up is never older than the revision beside it", async () => {
    let reads = 0;
    const held = hold(({ find }) => find !== undefined && ++reads === 2);
    const looking = store.findBySecretHash(digest("sa").sha256);
    await until("the second read", held.isHeld);
    const { revision } = await other.revokeKey({ keyId: "key_a", nowMs: t0 });
    held.release();
    const found = await looking;
    if (found?.key.revokedAtMs === undefined) expect(found?.revision).toBeLessThan(revision);
  });

  test("a change that was refused holds nothing up", async () => {
    await expect(store.createKey(newKey("b", "acct_a", "sa"))).rejects.toMatchObject({
      reason: ErrorReason.OPERATION_CONFLICT,
    });
    const { revision } = await store.createKey(newKey("c", "acct_a", "sc"));
    expect(await other.revision()).toBe(revision);
  });

  function loseOnce(fate: Fate, command: string, collection: string): void {
    isLost = false;
    wire.rule = (sent) => {
      if (isLost || sent[command] !== collection) return "pass";
      isLost = true;
      return fate;
    };
  }

  /** Holds the first command for which `fits` is true. */
  function hold(fits: (command: Document) => boolean) {
    const fate = Promise.withResolvers<Fate>();
    let isHeld = false;
    wire.rule = (command) => {
      if (isHeld || !fits(command)) return "pass";
      isHeld = true;
      return fate.promise;
    };
    return { isHeld: () => isHeld, release: () => fate.resolve("pass") };
  }

  async function find(secret: string): Promise<Key | undefined> {
    return (await other.findBySecretHash(digest(secret).sha256))?.key;
  }
});
