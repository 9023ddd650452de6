import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { maxGranted } from "../base/limits.ts";
import type { LedgerView } from "./change.ts";
import { entryHash } from "./change.ts";
import { fold } from "./ledger.ts";
import type { Operation, Outcome, Reserve } from "./operations.ts";
import {
  type Entry,
  emptyWallet,
  type KeyCounter,
  type OpenHold,
  spentThisMonth,
  type Unit,
  type Wallet,
} from "./wallet.ts";

const january = Date.UTC(2026, 0, 31, 23, 59, 59);
const february = Date.UTC(2026, 1, 1);

/** A wallet in memory. It does the same with changes as a store. */
function walletOf(unit: Unit, funds: bigint) {
  const holds = new Map<string, OpenHold>();
  const keys = new Map<string, KeyCounter>();
  const journal = new Map<string, Entry>();
  const view: LedgerView & { wallet: Wallet } = {
    wallet: emptyWallet({ accountId: "acct_a", unit }),
    hold: (id) => holds.get(id),
    key: (id) => keys.get(id),
    recorded: (id) => journal.get(id),
    entriesAfter: (number) => [...journal.values()].filter(({ n }) => n > number),
  };
  const apply = (operation: Operation, now = january): Outcome => {
    const { outcome, change } = fold(view, operation, now);
    if (change) {
      journal.set(change.entry.operationId, change.entry);
      if (change.hold) holds.set(change.entry.holdId, change.hold);
      else holds.delete(change.entry.holdId);
      if (change.key) keys.set(change.key.keyId, change.key);
      view.wallet = change.wallet;
    }
    return outcome;
  };
  if (funds > 0n) apply({ kind: "grant", grantId: "funds", amount: funds });
  return { view, apply, holds, keys, entries: () => [...journal.values()] };
}

function reserve(holdId: string, amount: bigint, more: Partial<Reserve> = {}): Reserve {
  const content = { holdKind: "text", keyId: "key_a", ref: "req", checkAt: february } as const;
  return { kind: "reserve", holdId, amount, ...content, ...more };
}

const monthly = (amount: bigint) => ({ amount, period: "month" }) as const;
const settle = (holdId: string, amount: bigint): Operation => ({ kind: "settle", holdId, amount });
const release = (holdId: string): Operation => ({ kind: "release", holdId });
const refused = (reason: ErrorReason) => expect.objectContaining({ kind: "refused", reason });

describe("holds", () => {
  test("a hold moves money from free to held, a settlement charges at most the hold", () => {
    const { apply, view } = walletOf("usd_micros", 100n);
    apply(reserve("hold_aaa", 60n));
    expect(view.wallet).toMatchObject({ free: 40n, held: 60n, spent: 0n, openHolds: 1 });
    expect(apply(settle("hold_aaa", 61n))).toMatchObject({ state: "settled", charged: 60n });
    expect(view.wallet).toMatchObject({ free: 40n, held: 0n, spent: 60n, openHolds: 0 });
  });

  test("what is not charged is free again; a release charges nothing", () => {
    const { apply, view } = walletOf("credits", 100n);
    apply(reserve("hold_aaa", 60n));
    apply(settle("hold_aaa", 20n));
    apply(reserve("hold_bbb", 60n));
    expect(apply(release("hold_bbb"))).toMatchObject({ state: "released", charged: 0n });
    expect(view.wallet).toMatchObject({ granted: 100n, free: 80n, held: 0n, spent: 20n });
  });

  test("settle and release share one slot: the first wins, the other reads the outcome", () => {
    const { apply, view } = walletOf("credits", 100n);
    apply(reserve("hold_aaa", 60n));
    apply(settle("hold_aaa", 20n));
    const { wallet } = view;
    const first = { kind: "closed", state: "settled", charged: 20n, replayed: true };
    expect(apply(release("hold_aaa"))).toEqual(first);
    expect(apply(settle("hold_aaa", 60n))).toEqual(first);
    expect(view.wallet).toBe(wallet);
  });

  test("the operator's settlement is refused above the hold, and changes nothing", () => {
    const { apply, view } = walletOf("credits", 100n);
    apply(reserve("hold_aaa", 60n));
    const ending = { kind: "settle", holdId: "hold_aaa", amount: 61n, withinHold: true } as const;
    expect(apply(ending)).toEqual(refused(ErrorReason.INVALID_ARGUMENT));
    expect(view.wallet.openHolds).toBe(1);
    expect(apply({ ...ending, amount: 60n })).toMatchObject({ charged: 60n });
  });

  test("a hold id is used once for ever: with the same content it replays, with other it is refused", () => {
    const { apply } = walletOf("usd_micros", 100n);
    apply(reserve("hold_aaa", 60n));
    const replay = (state: string) => ({ kind: "reserved", state, held: 60n, replayed: true });
    expect(apply(reserve("hold_aaa", 60n, { keyLimit: monthly(1n) }))).toEqual(replay("open"));
    apply(settle("hold_aaa", 0n));
    expect(apply(reserve("hold_aaa", 60n))).toEqual(replay("settled"));
    for (const other of [
      { amount: 61n },
      { holdKind: "job" },
      { keyId: "key_b" },
      { ref: "other" },
      { checkAt: february + 1 },
    ] as const) {
      const outcome = apply(reserve("hold_aaa", 60n, other));
      expect(outcome).toEqual(refused(ErrorReason.OPERATION_MISMATCH));
    }
  });

  test("extensions are made once each, in order, and keep the first content of the hold", () => {
    const { apply, holds } = walletOf("usd_micros", 100n);
    apply(reserve("hold_aaa", 60n));
    const extend = (step: number, checkAt: number): Operation => ({
      kind: "extend",
      holdId: "hold_aaa",
      step,
      checkAt,
    });
    expect(apply(extend(2, 5))).toEqual(refused(ErrorReason.OPERATION_CONFLICT));
    expect(apply(extend(1, 5))).toEqual({ kind: "extended", replayed: false });
    expect(apply(extend(1, 5))).toEqual({ kind: "extended", replayed: true });
    expect(apply(extend(1, 6))).toEqual(refused(ErrorReason.OPERATION_MISMATCH));
    expect(holds.get("hold_aaa")).toMatchObject({ checkAt: 5, extensions: 1 });
    expect(apply(reserve("hold_aaa", 60n))).toMatchObject({ state: "open", replayed: true });
    apply(release("hold_aaa"));
    expect(apply(extend(2, 9))).toEqual(refused(ErrorReason.HOLD_NOT_FOUND));
  });

  test("a hold that never was cannot be ended", () => {
    const { apply, entries } = walletOf("usd_micros", 100n);
    expect(apply(settle("hold_aaa", 1n))).toEqual(refused(ErrorReason.HOLD_NOT_FOUND));
    expect(apply(release("hold_aaa"))).toEqual(refused(ErrorReason.HOLD_NOT_FOUND));
    expect(entries()).toHaveLength(1);
  });
});

describe("refusals", () => {
  test("come in a fixed order, change nothing, and are not remembered", () => {
    const { apply, view, entries } = walletOf("usd_micros", 100n);
    for (let i = 0; i < 1_000; i++) apply(reserve(`hold_${i}xxx`, 0n));
    const asked = (amount: bigint, limit?: bigint) =>
      apply(
        reserve("hold_aaa", amount, { keyLimit: limit === undefined ? undefined : monthly(limit) }),
      );
    const { wallet } = view;
    expect(asked(101n, 5n)).toEqual(refused(ErrorReason.KEY_LIMIT_EXCEEDED));
    expect(asked(101n)).toEqual(refused(ErrorReason.INSUFFICIENT_BALANCE));
    expect(asked(100n)).toEqual(refused(ErrorReason.TOO_MANY_OPEN_REQUESTS));
    expect(view.wallet).toBe(wallet);
    expect(entries()).toHaveLength(1_001);
    apply(release("hold_7xxx"));
    expect(asked(100n)).toMatchObject({ kind: "reserved", replayed: false });
  });

  test("credits have their own reason, and no key limit", () => {
    const { apply, keys } = walletOf("credits", 5n);
    const beyond = reserve("hold_aaa", 6n, { keyLimit: monthly(1n) });
    expect(apply(beyond)).toEqual(refused(ErrorReason.INSUFFICIENT_CREDITS));
    expect(apply({ ...beyond, amount: 5n })).toMatchObject({ kind: "reserved" });
    expect(keys.size).toBe(0);
  });

  test("a grant is made once, with one amount, and never past int64", () => {
    const { apply, view } = walletOf("credits", 100n);
    const again = apply({ kind: "grant", grantId: "funds", amount: 100n });
    expect(again).toEqual({ kind: "granted", wallet: view.wallet, replayed: true });
    const other = apply({ kind: "grant", grantId: "funds", amount: 99n });
    expect(other).toEqual(refused(ErrorReason.OPERATION_MISMATCH));
    const huge = apply({ kind: "grant", grantId: "more", amount: maxGranted - 99n });
    expect(huge).toEqual(refused(ErrorReason.INVALID_ARGUMENT));
    expect(view.wallet.granted).toBe(100n);
  });
});

describe("months", () => {
  test("a hold of January that is settled in February is charged in February", () => {
    const { apply, view, keys } = walletOf("usd_micros", 100n);
    apply(reserve("hold_aaa", 30n), january);
    apply(reserve("hold_bbb", 30n), january);
    apply(settle("hold_aaa", 10n), january);
    expect(spentThisMonth(view.wallet, january)).toBe(10n);
    expect(spentThisMonth(view.wallet, february)).toBe(0n);
    apply(settle("hold_bbb", 7n), february);
    expect(spentThisMonth(view.wallet, february)).toBe(7n);
    expect(view.wallet.spent).toBe(17n);
    expect(keys.get("key_a")).toMatchObject({
      month: { period: "2026-02", spent: 7n },
      held: 0n,
    });
  });

  test("a key's limit counts the month's spend and all that is held, whenever it was opened", () => {
    const { apply } = walletOf("usd_micros", 1_000n);
    const limited = (holdId: string, amount: bigint) =>
      reserve(holdId, amount, { keyLimit: monthly(100n) });
    apply(limited("hold_aaa", 60n), january);
    apply(settle("hold_aaa", 50n), january);
    apply(limited("hold_bbb", 40n), january);
    const over = refused(ErrorReason.KEY_LIMIT_EXCEEDED);
    expect(apply(limited("hold_ccc", 11n), january)).toEqual(over);
    // January's 50 do not count any longer. The 40 that are still held would count to February.
    expect(apply(limited("hold_ccc", 61n), february)).toEqual(over);
    expect(apply(limited("hold_ccc", 60n), february)).toMatchObject({ kind: "reserved" });
    expect(apply(limited("hold_ddd", 1n), february)).toEqual(over);
    // Another key of the account has a separate count.
    const other = { ...limited("hold_ddd", 100n), keyId: "key_b" };
    expect(apply(other, february)).toMatchObject({ kind: "reserved" });
  });

  test("a limit that was set late counts what the key did before", () => {
    const { apply } = walletOf("usd_micros", 1_000n);
    apply(reserve("hold_aaa", 60n));
    apply(settle("hold_aaa", 60n));
    const limited = reserve("hold_bbb", 41n, { keyLimit: monthly(100n) });
    expect(apply(limited)).toEqual(refused(ErrorReason.KEY_LIMIT_EXCEEDED));
  });

  test("a clock that is a little behind does not take entries back into an earlier month", () => {
    const { apply, view, entries } = walletOf("usd_micros", 100n);
    const february1 = Date.UTC(2026, 1, 1);
    apply(reserve("hold_aaa", 30n), february1);
    apply(settle("hold_aaa", 10n), february1 - 60_000);
    expect(entries().at(-1)?.at).toBe(february1);
    expect(view.wallet).toMatchObject({ month: { period: "2026-02", spent: 10n } });
    expect(spentThisMonth(view.wallet, february1 - 60_000)).toBe(10n);
  });

  test("a clock that was a month ahead and comes back: the right month counts on, of wallet and key", () => {
    const { apply, view, keys, entries } = walletOf("usd_micros", 1_000n);
    const november = Date.UTC(2026, 10, 22);
    const january = november + 40 * 86_400_000;
    const charge = (holdId: string, amount: bigint, at: number) => {
      const limited = { keyLimit: monthly(100n) };
      const held = apply(reserve(holdId, amount, limited), at);
      return held.kind === "reserved" ? apply(settle(holdId, amount), at) : held;
    };
    charge("hold_aaa", 50n, november);
    charge("hold_bbb", 20n, january);
    expect(spentThisMonth(view.wallet, november)).toBe(50n);
    charge("hold_ccc", 30n, november + 1_000);
    expect(entries().at(-1)?.at).toBe(november + 1_000);
    expect(spentThisMonth(view.wallet, november)).toBe(80n);
    expect(keys.get("key_a")).toMatchObject({ month: { period: "2026-11", spent: 80n } });
    // The limit of November applies, and January keeps its total for when it comes.
    expect(charge("hold_ddd", 21n, november + 2_000)).toEqual(
      refused(ErrorReason.KEY_LIMIT_EXCEEDED),
    );
    expect(spentThisMonth(view.wallet, january)).toBe(20n);
    charge("hold_eee", 1n, january);
    expect(spentThisMonth(view.wallet, january)).toBe(21n);
  });
});

describe("the chain", () => {
  test("every entry is numbered, and chained to the one before it", () => {
    const { apply, view, entries } = walletOf("usd_micros", 100n);
    apply(reserve("hold_aaa", 30n));
    apply(settle("hold_aaa", 10n));
    expect(entries().map(({ n }) => n)).toEqual([1, 2, 3]);
    const hashes = entries().map(({ hash }) => hash);
    expect(entries().map((entry, i) => entryHash(hashes[i - 1] ?? "", view.wallet, entry))).toEqual(
      hashes,
    );
    expect(view.wallet.hash).toBe(hashes[2]);
    expect(hashes[0]).toMatch(/^[0-9a-f]{64}$/);
  });

  test("its form is fixed: an old journal is still whole tomorrow", () => {
    const { entries } = walletOf("usd_micros", 100n);
    // A change of this value makes every earlier journal look tampered with.
    expect(entries()[0]?.hash).toMatchInlineSnapshot(
      `"b83461076235bdf03bc40888d916e76c8e5fa2d3be665c19ab24efa404ecdb57"`,
    );
  });
});
