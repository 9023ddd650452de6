import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { withName, withNotes, withRate } from "../../services/auth/account.ts";
import type { AuthStore } from "../../services/auth/store.ts";
import { newAccount, newKey, t0 } from "./keys.shapes.ts";

/** The rules for every store about changes of accounts. `open` is that of the other suites. */
export function accountChangeContract(open: () => Promise<[AuthStore, AuthStore]>): void {
  describe("changes of accounts", () => {
    test("a rate is kept, told of every key, and goes to the default again", async () => {
      const [store, other] = await open();
      const { account } = await store.createAccount(newAccount("a", { secret: "s1" }));
      await store.createKey(newKey("b", "acct_a", "s2"));
      const before = await other.revision();
      const changed = await store.changeAccount("acct_a", (one) => withRate(one, 7));
      expect(changed).toEqual({ ...account, requestsPerMinute: 7, rateIsSet: true });
      expect(await other.findAccount("acct_a")).toEqual(changed);
      expect((await other.changesSince(before, 9))?.keyIds.toSorted()).toEqual(["key_a", "key_b"]);
      const now = await other.revision();
      expect(await other.changeAccount("acct_a", (one) => one)).toEqual(changed);
      expect(await store.revision()).toBe(now);
      expect(await other.changeAccount("acct_a", (one) => withRate(one, null))).toEqual(account);
      expect(await store.findAccount("acct_a")).toEqual(account);
    });

    test("a name is found at once, a repeat has the first one, and a closing erases texts", async () => {
      const [store, other] = await open();
      const first = { secret: "s1", operationId: "op", name: "Old" };
      await store.createAccount(newAccount("a", first));
      await store.createAccount(newAccount("b", { secret: "s2", name: "B" }));
      const changed = await store.changeAccount("acct_a", (one) =>
        withNotes(withName(withName(one, "Between"), "New"), "pays by invoice"),
      );
      expect(changed).toMatchObject({ name: "New", firstName: "Old", notes: "pays by invoice" });
      expect(await other.findAccount("acct_a")).toEqual(changed);
      const found = (prefix: string) => other.searchAccounts({ by: "name", prefix, limit: 9 });
      expect(await found("new")).toEqual([changed]);
      expect(await found("old")).toEqual([]);
      expect(await other.createAccount(newAccount("c", first))).toMatchObject({
        ...{ account: changed, replayed: true },
      });
      await expect(
        other.createAccount(newAccount("c", { ...first, name: "New" })),
      ).rejects.toMatchObject({ reason: ErrorReason.OPERATION_MISMATCH });
      expect(await other.changeAccount("acct_a", (one) => withName(one, "New"))).toEqual(changed);
      const { notes: _, ...without } = changed;
      expect(await other.changeAccount("acct_a", (one) => withNotes(one, ""))).toEqual(without);
      await store.changeAccount("acct_a", (one) => withNotes(one, "again"));
      const closing = await store.beginClosing({ accountId: "acct_a", nowMs: t0 + 1 });
      expect([closing.name, closing.firstName, closing.notes]).toEqual(["", undefined, undefined]);
      expect(await other.findAccount("acct_a")).toEqual(closing);
    });

    test("several are found by their ids", async () => {
      const [store, other] = await open();
      const made = ["a", "b", "c"].map((one) => newAccount(one, { secret: `s${one}` }));
      for (const one of made) await store.createAccount(one);
      await store.createKey(newKey("d", "acct_a", "sd"));
      const found = await other.findAccounts(["acct_c", "acct_none", "acct_a"]);
      const byId = found.toSorted((one, two) => (one.accountId < two.accountId ? -1 : 1));
      expect(byId).toEqual([made[0]?.account, made[2]?.account]);
      expect(await other.findAccounts([])).toEqual([]);
    });

    test("a refused change, and one of no account, change nothing", async () => {
      const [store, other] = await open();
      const { account } = await store.createAccount(newAccount("a", { secret: "s1" }));
      const now = await other.revision();
      const refused = new Error("refused");
      const refuse = () => {
        throw refused;
      };
      await expect(store.changeAccount("acct_a", refuse)).rejects.toBe(refused);
      await expect(store.changeAccount("acct_x", (one) => one)).rejects.toMatchObject({
        reason: ErrorReason.ACCOUNT_NOT_FOUND,
      });
      expect(await other.findAccount("acct_a")).toEqual(account);
      expect(await other.revision()).toBe(now);
    });
  });
}
