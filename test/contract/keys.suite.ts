import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Account } from "../../services/auth/account.ts";
import type { Key } from "../../services/auth/key.ts";
import type { AuthStore } from "../../services/auth/store.ts";
import { digest, newAccount, newKey, t0 } from "./keys.shapes.ts";

/** The rules for every store of accounts and keys. `open` gives two clients of one empty store. */
export function keyStoreContract(open: () => Promise<[AuthStore, AuthStore]>): void {
  describe("accounts", () => {
    test("an account and its first key are read back as they were made", async () => {
      const [store] = await open();
      const command = newAccount("a", { secret: "first" });
      const made = await store.createAccount(command);
      expect(made).toEqual({
        account: command.account,
        key: { ...command.key, revision: expect.any(BigInt) },
        replayed: false,
      });
      expect(await store.findAccount("acct_a")).toEqual(command.account);
      expect(await store.listKeys("acct_a")).toEqual([made.key]);
    });

    test("an operation id makes one account, also where its key was changed since", async () => {
      const [store] = await open();
      const first = await store.createAccount(
        newAccount("a", { secret: "s1", operationId: "op", secretBrought: true }),
      );
      await store.rotateKey({
        keyId: first.key.keyId,
        secret: digest("s2"),
        graceMs: 0,
        nowMs: t0 + 1,
      });
      const again = await store.createAccount(
        newAccount("b", { secret: "s1", operationId: "op", secretBrought: true, name: "a" }),
      );
      expect(again.replayed).toBe(true);
      expect(again.account).toEqual(first.account);
      expect(again.key).toMatchObject({ keyId: first.key.keyId, secret: digest("s2") });
      const silent = await store.createAccount(
        newAccount("c", { secret: "drawn", operationId: "op", name: "a" }),
      );
      expect(silent).toMatchObject({ replayed: true, account: first.account });
      expect(await store.listAccounts({ limit: 10 })).toEqual([first.account]);
      expect(await store.findBySecretHash(digest("drawn").sha256)).toBeUndefined();
    });

    test.each([
      { differs: "name", command: { secret: "s1", name: "other" } },
      { differs: "secret", command: { secret: "s2", name: "a", secretBrought: true } },
    ])("an operation id with another $differs is refused", async ({ command }) => {
      const [store] = await open();
      await store.createAccount(newAccount("a", { secret: "s1", operationId: "op" }));
      const revision = await store.revision();
      await expect(
        store.createAccount(newAccount("b", { ...command, operationId: "op" })),
      ).rejects.toMatchObject({ reason: ErrorReason.OPERATION_MISMATCH });
      expect(await store.revision()).toBe(revision);
      expect(await store.listAccounts({ limit: 10 })).toHaveLength(1);
    });

    test("pages are in the order of age, then id, without gap or repeat", async () => {
      const [store] = await open();
      const ages = { d: 1, a: 2, c: 2, b: 2, e: 3 };
      for (const [name, age] of Object.entries(ages)) {
        await store.createAccount(newAccount(name, { secret: name, createdAtMs: t0 + age }));
      }
      const seen: string[] = [];
      let page = await store.listAccounts({ limit: 2 });
      while (page.length > 0) {
        seen.push(...page.map((account) => account.name));
        const last = page.at(-1) as Account;
        page = await store.listAccounts({ after: last, limit: 2 });
      }
      expect(seen).toEqual(["d", "a", "b", "c", "e"]);
    });

    test("unknown ids", async () => {
      const [store] = await open();
      expect(await store.findAccount("acct_none")).toBeUndefined();
      const unknown = { reason: ErrorReason.ACCOUNT_NOT_FOUND };
      await expect(store.listKeys("acct_none")).rejects.toMatchObject(unknown);
      await expect(store.createKey(newKey("k", "acct_none", "s"))).rejects.toMatchObject(unknown);
      const noKey = { reason: ErrorReason.KEY_NOT_FOUND };
      await expect(store.revokeKey({ keyId: "key_none", nowMs: t0 })).rejects.toMatchObject(noKey);
      await expect(
        store.rotateKey({ keyId: "key_none", secret: digest("s"), graceMs: 0, nowMs: t0 }),
      ).rejects.toMatchObject(noKey);
    });
  });

  describe("keys", () => {
    test("every field of a key survives the store", async () => {
      const [store] = await open();
      await store.createAccount(newAccount("a", { secret: "first" }));
      const key: Key = {
        ...newKey("full", "acct_a", "s"),
        scopes: [Scope.TEXT, Scope.BILLING],
        allowedModels: ["chat-1", 'odd "id"'],
        expiresAtMs: t0 + 5_000,
        monthlyUsdMicrosLimit: 9_007_199_254_740_993n,
        requestsPerMinute: 7,
      };
      const stored = await store.createKey(key);
      expect(stored).toEqual({ ...key, revision: expect.any(BigInt) });
      const found = await store.findBySecretHash(digest("s").sha256);
      expect(found?.key).toEqual(stored);
      expect(found?.account.accountId).toBe("acct_a");
      const zero = await store.createKey({
        ...newKey("zero", "acct_a", "z"),
        monthlyUsdMicrosLimit: 0n,
      });
      expect((await store.listKeys("acct_a")).at(-1)).toEqual(zero);
      expect(zero.monthlyUsdMicrosLimit).toBe(0n);
    });

    test("a rotated key is found by both secrets, then by the last two only", async () => {
      const [store] = await open();
      const { key } = await store.createAccount(newAccount("a", { secret: "s1" }));
      const rotate = (secret: string, graceMs: number) =>
        store.rotateKey({ keyId: key.keyId, secret: digest(secret), graceMs, nowMs: t0 });
      await rotate("s2", 1_000);
      expect((await find(store, "s1"))?.former?.endMs).toBe(t0 + 1_000);
      expect((await find(store, "s2"))?.keyId).toBe(key.keyId);
      await rotate("s3", 2_000);
      expect(await find(store, "s1")).toBeUndefined();
      expect((await find(store, "s2"))?.former?.endMs).toBe(t0 + 2_000);
      const last = await rotate("s4", 0);
      expect(last.former).toBeUndefined();
      expect(await find(store, "s3")).toBeUndefined();
    });

    test("a revocation is kept with its first time, and ends rotation", async () => {
      const [store] = await open();
      const { key } = await store.createAccount(newAccount("a", { secret: "s1" }));
      const first = await store.revokeKey({ keyId: key.keyId, nowMs: t0 + 1 });
      expect(first.revokedAtMs).toBe(t0 + 1);
      expect(await store.revokeKey({ keyId: key.keyId, nowMs: t0 + 2 })).toEqual(first);
      await expect(
        store.rotateKey({ keyId: key.keyId, secret: digest("s2"), graceMs: 0, nowMs: t0 + 3 }),
      ).rejects.toMatchObject({ reason: ErrorReason.OPERATION_CONFLICT });
      expect(await find(store, "s1")).toEqual(first);
    });

    test("a secret is one key's, current or former, revoked or not", async () => {
      const [store] = await open();
      const { key } = await store.createAccount(newAccount("a", { secret: "s1" }));
      await store.rotateKey({
        keyId: key.keyId,
        secret: digest("s2"),
        graceMs: 1_000,
        nowMs: t0,
      });
      await store.revokeKey({ keyId: key.keyId, nowMs: t0 });
      const taken = { reason: ErrorReason.OPERATION_CONFLICT };
      for (const secret of ["s1", "s2"]) {
        await expect(store.createAccount(newAccount("b", { secret }))).rejects.toMatchObject(taken);
        await expect(store.createKey(newKey("b", "acct_a", secret))).rejects.toMatchObject(taken);
      }
      expect(await store.findAccount("acct_b")).toBeUndefined();
      expect(await store.listKeys("acct_a")).toHaveLength(1);
    });

    test("keys are listed by age, then id, of their account alone", async () => {
      const [store] = await open();
      await store.createAccount(newAccount("a", { secret: "sa", createdAtMs: t0 }));
      await store.createAccount(newAccount("b", { secret: "sb", createdAtMs: t0 }));
      for (const [name, age] of Object.entries({ z: 1, y: 2, x: 2 })) {
        await store.createKey({ ...newKey(name, "acct_a", name), createdAtMs: t0 + age });
      }
      const listed = await store.listKeys("acct_a");
      expect(listed.map((key) => key.keyId)).toEqual(["key_a", "key_z", "key_x", "key_y"]);
    });
  });

  describe("changes", () => {
    test("the revision begins above 0, rises with every change, and tells which keys changed", async () => {
      const [store] = await open();
      const start = await store.revision();
      expect(start).toBeGreaterThan(0n);
      const made = await store.createAccount(newAccount("a", { secret: "s1" }));
      const key = await store.createKey(newKey("b", "acct_a", "s2"));
      expect(made.key.revision).toBeGreaterThan(start);
      expect(key.revision).toBeGreaterThan(made.key.revision);
      expect(await store.revision()).toBe(key.revision);
      await store.revokeKey({ keyId: "key_a", nowMs: t0 });
      const changes = await store.changesSince(key.revision, 10);
      expect(changes).toEqual({ revision: await store.revision(), keyIds: ["key_a"] });
      const all = await store.changesSince(start, 10);
      expect(new Set(all?.keyIds)).toEqual(new Set(["key_a", "key_b"]));
      expect(await store.changesSince(await store.revision(), 10)).toMatchObject({ keyIds: [] });
    });

    test("what cannot be told without a gap is not told", async () => {
      const [store] = await open();
      await store.createAccount(newAccount("a", { secret: "s1" }));
      const revision = await store.revision();
      expect(await store.changesSince(revision + 1n, 10)).toBeUndefined();
      for (const name of ["b", "c", "d"]) await store.createKey(newKey(name, "acct_a", name));
      expect((await store.changesSince(revision, 3))?.keyIds).toHaveLength(3);
      expect(await store.changesSince(revision, 2)).toBeUndefined();
    });

    test("a found key is as new as the revision beside it", async () => {
      const [store, other] = await open();
      const { key } = await store.createAccount(newAccount("a", { secret: "s1" }));
      await other.revokeKey({ keyId: key.keyId, nowMs: t0 });
      const found = await store.findBySecretHash(digest("s1").sha256);
      expect(found?.key.revokedAtMs).toBe(t0);
      expect(found?.revision).toBe(await other.revision());
    });
  });

  describe("two clients at once", () => {
    test("an operation id makes one account", async () => {
      const stores = await open();
      const made = await Promise.all(
        numbers(20).map((i) =>
          side(stores, i).createAccount(
            newAccount(`r${i}`, { secret: `s${i}`, operationId: "op", name: "same" }),
          ),
        ),
      );
      expect(made.filter((one) => !one.replayed)).toHaveLength(1);
      expect(new Set(made.map((one) => one.account.accountId)).size).toBe(1);
      expect(new Set(made.map((one) => one.key.keyId)).size).toBe(1);
      expect(await stores[0].listAccounts({ limit: 30 })).toHaveLength(1);
    });

    test("a secret goes to one of those who want it", async () => {
      const stores = await open();
      const made = await Promise.allSettled(
        numbers(10).map((i) => side(stores, i).createAccount(newAccount(`r${i}`, { secret: "s" }))),
      );
      expect(made.filter((one) => one.status === "fulfilled")).toHaveLength(1);
      for (const one of made) {
        if (one.status === "rejected") {
          expect(one.reason).toMatchObject({ reason: ErrorReason.OPERATION_CONFLICT });
        }
      }
    });

    test("rotations follow one another: two secrets stay, each change has its revision", async () => {
      const stores = await open();
      const { key } = await stores[0].createAccount(newAccount("a", { secret: "s" }));
      const rotated = await Promise.all(
        numbers(10).map((i) =>
          side(stores, i).rotateKey({
            keyId: key.keyId,
            secret: digest(`s${i}`),
            graceMs: 1_000,
            nowMs: t0,
          }),
        ),
      );
      expect(new Set(rotated.map((one) => one.revision)).size).toBe(10);
      const found = await Promise.all(numbers(10).map((i) => find(stores[1], `s${i}`)));
      expect(found.filter((one) => one !== undefined)).toHaveLength(2);
    });

    test("a revocation is not undone by a rotation beside it", async () => {
      const stores = await open();
      const { key } = await stores[0].createAccount(newAccount("a", { secret: "s" }));
      await Promise.allSettled([
        ...numbers(5).map((i) =>
          stores[0].rotateKey({
            keyId: key.keyId,
            secret: digest(`s${i}`),
            graceMs: 1_000,
            nowMs: t0,
          }),
        ),
        stores[1].revokeKey({ keyId: key.keyId, nowMs: t0 }),
        ...numbers(5).map((i) =>
          stores[1].rotateKey({
            keyId: key.keyId,
            secret: digest(`t${i}`),
            graceMs: 1_000,
            nowMs: t0,
          }),
        ),
      ]);
      expect((await stores[0].listKeys("acct_a"))[0]?.revokedAtMs).toBe(t0);
    });

    test("the thousandth key is the last", async () => {
      const stores = await open();
      await stores[0].createAccount(newAccount("a", { secret: "s" }));
      // Some at a time: more would wait for a connection to the database until the store counts as away.
      const next = numbers(997).values();
      const make = async () => {
        for (const i of next) await stores[0].createKey(newKey(`n${i}`, "acct_a", `n${i}`));
      };
      await Promise.all(Array.from({ length: 20 }, make));
      const last = await Promise.allSettled(
        numbers(6).map((i) => side(stores, i).createKey(newKey(`l${i}`, "acct_a", `l${i}`))),
      );
      expect(last.filter((one) => one.status === "fulfilled")).toHaveLength(2);
      expect(last.find((one) => one.status === "rejected")?.reason).toMatchObject({
        reason: ErrorReason.OPERATION_CONFLICT,
      });
      expect(await stores[1].listKeys("acct_a")).toHaveLength(1_000);
    });
  });
}

async function find(store: AuthStore, secret: string) {
  return (await store.findBySecretHash(digest(secret).sha256))?.key;
}

function side<T>(pair: [T, T], i: number): T {
  return i % 2 === 0 ? pair[0] : pair[1];
}

function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}
