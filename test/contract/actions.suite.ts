import { expect, test } from "vitest";
import type { ActionStore, OperatorAction } from "../../services/auth/action.ts";
import { t0 } from "./keys.shapes.ts";

/** The rules for every store of the audit log. `open` gives two clients of one empty store. */
export function actionStoreContract(open: () => Promise<[ActionStore, ActionStore]>): void {
  const line = (n: number, more: Partial<OperatorAction> = {}): OperatorAction => ({
    actionId: `act_${n}`,
    actor: "admin token",
    action: "account.top_up",
    accountId: `acct_${n % 2}`,
    target: "",
    details: '{"usdMicros":5}',
    beganAtMs: t0 + n,
    ...more,
  });
  const end = { reason: "", accountId: "", target: "", endedAtMs: t0 + 99 };

  test("a line is added once, ended once, and listed newest first, by account and page", async () => {
    const [store, other] = await open();
    for (const n of [1, 2, 3]) await store.begin(line(n));
    await other.begin(line(2, { actor: "another operator" }));
    await other.end({ ...end, actionId: "act_2", outcome: "done", target: "entry 4" });
    await store.end({ ...end, actionId: "act_2", outcome: "refused", reason: "late" });
    await store.end({ ...end, actionId: "act_1", outcome: "refused", reason: "no_such" });
    await store.end({ ...end, actionId: "act_9", outcome: "done" });
    const done = { ...line(2), outcome: "done", endedAtMs: t0 + 99, target: "entry 4" };
    const refused = { ...line(1), outcome: "refused", reason: "no_such", endedAtMs: t0 + 99 };
    const all = await other.list({ accountId: "", limit: 9 });
    expect(all).toEqual([line(3), done, refused]);
    expect(await store.list({ accountId: "acct_1", limit: 9 })).toEqual([line(3), refused]);
    const after = { beganAtMs: t0 + 3, actionId: "act_3" };
    expect(await other.list({ accountId: "", after, limit: 1 })).toEqual([done]);
    expect(await other.list({ accountId: "acct_1", after, limit: 9 })).toEqual([refused]);
  });
}
