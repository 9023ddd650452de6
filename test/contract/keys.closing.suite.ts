import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { ended } from "../../services/auth/key.ts";
import type { AuthStore } from "../../services/auth/store.ts";
import { digest, newAccount, newKey, t0 } from "./keys.shapes.ts";

/** The rules for every store about closing and searching accounts, for operators. `open` is that of the other suites. */
export function operatorStoreContract(open: () => Promise<[AuthStore, AuthStore]>): void {
  describe("closing", () => {
    test("is a state with its first time: no name, all keys told, found until it is over", async () => {
      const [store, other] = await open();
      await store.createAccount(newAccount("a", { secret: "s1", name: "Ada" }));
      await store.createAccount(newAccount("b", { secret: "s2", name: "Bob" }));
      await store.createKey({ ...newKey("c", "acct_a", "s3"), name: "of Ada" });
      const before = await other.revision();
      const closing = await store.beginClosing({ accountId: "acct_a", nowMs: t0 + 1 });
      expect(closing).toMatchObject({ accountId: "acct_a", name: "", closingAtMs: t0 + 1 });
      expect((await other.changesSince(before, 9))?.keyIds.toSorted()).toEqual(["key_a", "key_c"]);
      expect(await other.beginClosing({ accountId: "acct_a", nowMs: t0 + 2 })).toEqual(closing);
      expect(await other.closingAccounts(9)).toEqual([closing]);
      expect((await other.findBySecretHash(digest("s3").sha256))?.account).toEqual(closing);
      const state = { accountId: "acct_a", suspended: false, nowMs: t0 };
      await expect(store.setAccountState(state)).rejects.toMatchObject({
        reason: ErrorReason.OPERATION_CONFLICT,
      });
      await expect(store.endClosing({ accountId: "acct_b", nowMs: t0 })).rejects.toMatchObject({
        reason: ErrorReason.OPERATION_CONFLICT,
      });
      const key = await store.changeKey("key_c", (one) => ended(one, t0 + 3));
      expect(key).toMatchObject({ revokedAtMs: t0 + 3 });
      expect(await other.findKey("key_c")).toEqual(key);
      expect(key.name).toBeUndefined();
      const closed = await store.endClosing({ accountId: "acct_a", nowMs: t0 + 9 });
      expect(closed).toEqual({ ...closing, closedAtMs: t0 + 9 });
      expect(await other.endClosing({ accountId: "acct_a", nowMs: t0 + 10 })).toEqual(closed);
      expect(await other.closingAccounts(9)).toEqual([]);
      expect(await other.searchAccounts({ by: "name", prefix: "a", limit: 9 })).toEqual([]);
      for (const close of [store.beginClosing, store.endClosing]) {
        await expect(close({ accountId: "acct_none", nowMs: t0 })).rejects.toMatchObject({
          reason: ErrorReason.ACCOUNT_NOT_FOUND,
        });
      }
    });
  });

  describe("what is looked for", () => {
    test("accounts by the beginning of id or name, case ignored, page by page", async () => {
      const [store, other] = await open();
      const names = ["Team Ä", "team a", "TEAM B", "other", "team a"];
      for (const [i, name] of names.entries()) {
        await store.createAccount(newAccount(`x${i}`, { secret: `s${i}`, name }));
      }
      const found = async (by: "id" | "name", prefix: string, limit = 9) =>
        (await other.searchAccounts({ by, prefix, limit })).map(({ accountId }) => accountId);
      expect(await found("name", "team a")).toEqual(["acct_x1", "acct_x4"]);
      expect(await found("name", "team", 3)).toEqual(["acct_x1", "acct_x4", "acct_x2"]);
      expect(await found("name", "team ä")).toEqual(["acct_x0"]);
      expect(await found("id", "acct_x", 2)).toEqual(["acct_x0", "acct_x1"]);
      expect(await found("id", "acct_y")).toEqual([]);
      const after = { nameKey: "team a", accountId: "acct_x1" };
      const next = await other.searchAccounts({ by: "name", prefix: "team", after, limit: 2 });
      expect(next.map(({ accountId }) => accountId)).toEqual(["acct_x4", "acct_x2"]);
      const later = { nameKey: "", accountId: "acct_x3" };
      const rest = await other.searchAccounts({
        by: "id",
        prefix: "acct_x",
        after: later,
        limit: 9,
      });
      expect(rest.map(({ accountId }) => accountId)).toEqual(["acct_x4"]);
    });

    test("keys of all accounts by age, or by the beginning of their ids", async () => {
      const [store, other] = await open();
      await store.createAccount(newAccount("b", { secret: "s1", createdAtMs: t0 + 5 }));
      await store.createAccount(newAccount("a", { secret: "s2", createdAtMs: t0 + 9 }));
      await store.createKey({ ...newKey("bb", "acct_a", "s3"), createdAtMs: t0 + 7 });
      const ids = async (page: Parameters<AuthStore["listAllKeys"]>[0]) =>
        (await other.listAllKeys(page)).map(({ keyId }) => keyId);
      expect(await ids({ limit: 9 })).toEqual(["key_b", "key_bb", "key_a"]);
      const after = { createdAtMs: t0 + 5, keyId: "key_b" };
      expect(await ids({ after, limit: 1 })).toEqual(["key_bb"]);
      expect(await ids({ prefix: "key_b", limit: 9 })).toEqual(["key_b", "key_bb"]);
      expect(await ids({ prefix: "key_b", after, limit: 9 })).toEqual(["key_bb"]);
    });
  });
}
