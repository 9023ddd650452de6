import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Key } from "../../services/auth/key.ts";
import type { AuthStore } from "../../services/auth/store.ts";
import { digest, newAccount, newKey, t0 } from "./keys.shapes.ts";

const operation = { slot: "a".repeat(64), body: "b".repeat(64) };

/** The rules for every store about managed keys and suspended accounts. `open` is that of the other suite. */
export function managedKeyContract(open: () => Promise<[AuthStore, AuthStore]>): void {
  const openWithAccount = async () => {
    const stores = await open();
    const { key } = await stores[0].createAccount(newAccount("a", { secret: "s1" }));
    return { store: stores[0], other: stores[1], first: key };
  };

  describe("managed keys", () => {
    test("name, state, uses and operations survive the store, and are found by id and operation", async () => {
      const { store, other } = await openWithAccount();
      const key: Key = {
        ...newKey("full", "acct_a", "s2"),
        name: "worker “7”",
        webhookUrl: "https://example.com/é?a=b",
        disabled: true,
        lastUsedAtMs: t0 + 60_000,
        updatedAtMs: t0 + 5,
        madeBy: operation,
        rotations: [{ slot: "c".repeat(64), body: "d".repeat(64) }],
      };
      const stored = await store.createKey(key);
      expect(stored).toEqual({ ...key, revision: expect.any(BigInt) });
      expect(await other.findKey("key_full")).toEqual(stored);
      expect(await other.findKeyMadeBy(operation.slot)).toEqual(stored);
      expect(await other.findKey("key_none")).toBeUndefined();
      expect(await other.findKeyMadeBy("e".repeat(64))).toBeUndefined();
    });

    test("a change is in place and told; one that changes nothing is no change", async () => {
      const { store, other, first } = await openWithAccount();
      const before = await store.revision();
      const named = await store.changeKey(first.keyId, (key) => ({
        ...key,
        name: "n",
        disabled: true,
      }));
      expect(await other.findKey(first.keyId)).toEqual(named);
      expect(await other.changesSince(before, 9)).toMatchObject({ keyIds: [first.keyId] });
      const revision = await store.revision();
      expect(await store.changeKey(first.keyId, (key) => key)).toEqual(named);
      const { disabled: _disabled, ...enabled } = await store.changeKey(
        first.keyId,
        ({ disabled: _was, ...key }) => key,
      );
      expect((await other.findKey(first.keyId))?.disabled).toBeUndefined();
      expect(enabled.revision).toBeGreaterThan(revision);
      const refusal = new Error("not this one");
      await expect(
        store.changeKey(first.keyId, () => {
          throw refusal;
        }),
      ).rejects.toBe(refusal);
      await expect(store.changeKey("key_none", (key) => key)).rejects.toMatchObject({
        reason: ErrorReason.KEY_NOT_FOUND,
      });
    });

    test("changes of both clients at once are all kept", async () => {
      const { store, other, first } = await openWithAccount();
      await Promise.all(
        Array.from({ length: 12 }, (_, i) =>
          (i % 2 ? store : other).changeKey(first.keyId, (key) => ({
            ...key,
            requestsPerMinute: key.requestsPerMinute + 1,
          })),
        ),
      );
      expect((await store.findKey(first.keyId))?.requestsPerMinute).toBe(3_012);
    });

    test("an operation makes one key, at once or later, and takes no other body", async () => {
      const { store, other } = await openWithAccount();
      const made = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          (i % 2 ? store : other).createKey({
            ...newKey(`m${i}`, "acct_a", `m${i}`),
            madeBy: operation,
          }),
        ),
      );
      expect(new Set(made.map(({ keyId }) => keyId)).size).toBe(1);
      expect(await store.listKeys("acct_a")).toHaveLength(2);
      await store.revokeKey({ keyId: made[0]?.keyId ?? "", nowMs: t0 });
      const again = await other.createKey({ ...newKey("z", "acct_a", "z"), madeBy: operation });
      expect(again).toMatchObject({ keyId: made[0]?.keyId, revokedAtMs: t0 });
      const reused = { ...operation, body: "other" };
      await expect(
        store.createKey({ ...newKey("y", "acct_a", "y"), madeBy: reused }),
      ).rejects.toMatchObject({ reason: ErrorReason.IDEMPOTENCY_KEY_REUSED });
      expect(await store.listKeys("acct_a")).toHaveLength(2);
    });

    test("an operation rotates once; who may not rotate changes nothing", async () => {
      const { store, other, first } = await openWithAccount();
      const rotate = (secret: string, body = operation.body) =>
        store.rotateKey({
          ...{ keyId: first.keyId, secret: digest(secret), graceMs: 1_000, nowMs: t0 + 1 },
          operation: { ...operation, body },
        });
      const rotated = await rotate("s2");
      expect(rotated).toMatchObject({ secret: digest("s2"), updatedAtMs: t0 + 1 });
      expect(await rotate("s3")).toEqual(rotated);
      await expect(rotate("s4", "other")).rejects.toMatchObject({
        reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
      });
      const refusal = new Error("not this one");
      const forbidden = store.rotateKey({
        ...{ keyId: first.keyId, secret: digest("s5"), graceMs: 0, nowMs: t0 },
        allow() {
          throw refusal;
        },
      });
      await expect(forbidden).rejects.toBe(refusal);
      expect(await other.findKey(first.keyId)).toEqual(rotated);
    });

    test("uses rise, to the last that is known, and are no change", async () => {
      const { store, other, first } = await openWithAccount();
      const revision = await store.revision();
      await store.noteUses([
        { keyId: first.keyId, atMs: t0 + 120_000 },
        { keyId: "key_none", atMs: t0 },
      ]);
      await other.noteUses([{ keyId: first.keyId, atMs: t0 + 60_000 }]);
      await other.noteUses([]);
      expect((await other.findKey(first.keyId))?.lastUsedAtMs).toBe(t0 + 120_000);
      expect(await store.revision()).toBe(revision);
      await store.revokeKey({ keyId: first.keyId, nowMs: t0 });
      expect((await other.findKey(first.keyId))?.lastUsedAtMs).toBe(t0 + 120_000);
    });
  });

  describe("an account's state", () => {
    test("is kept with its first time, and all of its keys are told as changed, each time", async () => {
      const { store, other } = await openWithAccount();
      await store.createKey(newKey("b", "acct_a", "s2"));
      await store.createAccount(newAccount("c", { secret: "s3" }));
      const set = async (suspended: boolean, nowMs: number) => {
        const before = await other.revision();
        const account = await store.setAccountState({ accountId: "acct_a", suspended, nowMs });
        const changes = await other.changesSince(before, 9);
        return { account, told: [...(changes?.keyIds ?? [])].sort() };
      };
      const suspended = await set(true, t0 + 1);
      expect(suspended).toMatchObject({
        account: { accountId: "acct_a", suspendedAtMs: t0 + 1 },
        told: ["key_a", "key_b"],
      });
      expect(await other.findAccount("acct_a")).toEqual(suspended.account);
      expect((await other.findBySecretHash(digest("s2").sha256))?.account).toEqual(
        suspended.account,
      );
      expect(await set(true, t0 + 2)).toEqual({ account: suspended.account, told: [] });
      const resumed = await set(false, t0 + 3);
      expect(resumed.account.suspendedAtMs).toBeUndefined();
      expect(resumed.told).toEqual(["key_a", "key_b"]);
      expect(await other.findAccount("acct_a")).toEqual(resumed.account);
      // A later change of one key concerns only that key.
      const before = await other.revision();
      await store.revokeKey({ keyId: "key_b", nowMs: t0 });
      expect((await other.changesSince(before, 9))?.keyIds).toEqual(["key_b"]);
      await expect(
        store.setAccountState({ accountId: "acct_none", suspended: true, nowMs: t0 }),
      ).rejects.toMatchObject({ reason: ErrorReason.ACCOUNT_NOT_FOUND });
    });

    test("survives changes of its first key", async () => {
      const { store, other, first } = await openWithAccount();
      await store.setAccountState({ accountId: "acct_a", suspended: true, nowMs: t0 });
      await other.changeKey(first.keyId, (key) => ({ ...key, name: "n" }));
      await other.rotateKey({ keyId: first.keyId, secret: digest("s2"), graceMs: 0, nowMs: t0 });
      expect((await store.findAccount("acct_a"))?.suspendedAtMs).toBe(t0);
    });
  });
}
