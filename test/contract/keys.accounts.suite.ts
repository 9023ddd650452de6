import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { withRate } from "../../services/auth/account.ts";
import type { AuthStore } from "../../services/auth/store.ts";
import { newAccount, newKey } from "./keys.shapes.ts";

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
