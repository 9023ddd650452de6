import { beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { auditWallet, type Difference } from "../../services/billing/ledger/audit.ts";
import type {
  Draw,
  Operation,
  Outcome,
  Reserve,
} from "../../services/billing/ledger/operations.ts";
import type {
  LedgerStore,
  WalletHold,
  WalletSnapshot,
} from "../../services/billing/ledger/store.ts";
import { emptyWallet, type Unit } from "../../services/billing/ledger/wallet.ts";
import { refundContract } from "./ledger.refunds.suite.ts";
import { takeBackContract } from "./ledger.take-backs.suite.ts";

const now = Date.UTC(2026, 0, 15, 12);
const usd = { accountId: "acct_a", unit: "usd_micros" } as const;
const credits = { accountId: "acct_a", unit: "credits" } as const;
const other = { accountId: "acct_b", unit: "usd_micros" } as const;

/** The rules for every store of the ledger. `open` gives two clients of one empty store. */
export function ledgerStoreContract(open: () => Promise<[LedgerStore, LedgerStore]>): void {
  refundContract(open);
  takeBackContract(open);
  let store: LedgerStore;
  let second: LedgerStore;
  beforeEach(async () => {
    [store, second] = await open();
  });

  test("a wallet without entries is empty, and stays so when refused", async () => {
    expect(await store.wallet(usd)).toEqual(emptyWallet(usd));
    expect(await apply(reserve("hold_aaa", 1n))).toEqual(refused(ErrorReason.INSUFFICIENT_BALANCE));
    expect(await store.wallet(usd)).toEqual(emptyWallet(usd));
    expect(await snapshots(store)).toEqual([]);
  });

  test("what was first made elsewhere, in the same ms, does not hide what came with it", async () => {
    await apply(grant("g", 100n));
    const same = reserve("hold_aaa", 10n);
    await second.apply(usd, [same], now);
    // This client still remembers the wallet as it was before.
    const outcomes = await store.apply(usd, [same, reserve("hold_bbb", 20n)], now);
    expect(outcomes).toMatchObject([{ state: "open" }, { state: "open", replayed: false }]);
    expect(await store.wallet(usd)).toMatchObject({ free: 70n, held: 30n, openHolds: 2 });
  });

  test("a batch has an outcome for each operation, in order, and refusals do not stop it", async () => {
    const outcomes = await store.apply(
      usd,
      [
        grant("g", 100n),
        reserve("hold_aaa", 60n),
        reserve("hold_bbb", 60n),
        { kind: "settle", holdId: "hold_aaa", amount: 20n },
        reserve("hold_bbb", 60n),
        { kind: "release", holdId: "hold_ccc" },
      ],
      now,
    );
    expect(outcomes).toMatchObject([
      { kind: "granted", replayed: false },
      { kind: "reserved", state: "open", replayed: false },
      refused(ErrorReason.INSUFFICIENT_BALANCE),
      { kind: "closed", state: "settled", charged: 20n },
      { kind: "reserved", state: "open", replayed: false },
      refused(ErrorReason.HOLD_NOT_FOUND),
    ]);
    const figures = { granted: 100n, free: 20n, held: 60n, spent: 20n, openHolds: 1, n: 4 };
    expect(await second.wallet(usd)).toMatchObject(figures);
    expect(await differences(second)).toEqual([]);
  });

  test("what another client did is known: one operation id, one outcome", async () => {
    await apply(grant("g", 100n));
    await apply(reserve("hold_aaa", 60n));
    await second.apply(usd, [{ kind: "settle", holdId: "hold_aaa", amount: 20n }], now);
    const late = { kind: "closed", state: "settled", charged: 20n, replayed: true };
    expect(await apply({ kind: "release", holdId: "hold_aaa" })).toEqual(late);
    const replayed = { kind: "reserved", state: "settled", held: 60n, replayed: true };
    expect(await apply(reserve("hold_aaa", 60n))).toEqual(replayed);
    expect(await apply({ ...reserve("hold_aaa", 60n), keyId: "key_b" })).toEqual(
      refused(ErrorReason.OPERATION_MISMATCH),
    );
  });

  test("a draw charges a request once and ends its hold, with any number of draws and anything after them", async () => {
    await apply(grant("g", 100n));
    await apply(reserve("hold_aaa", 60n));
    const told = '{"model":"chat"}';
    const first = { ...draw("hold_aaa", 20n), record: told };
    const drawn = (charged: bigint, replayed = true) => ({ kind: "drawn", charged, replayed });
    expect(await apply(first)).toEqual(drawn(20n, false));
    const [again] = await second.apply(usd, [draw("hold_aaa", 7n)], now);
    expect(again).toEqual(drawn(20n));
    const settled = { kind: "closed", state: "settled", charged: 20n, replayed: true };
    expect(await apply({ kind: "release", holdId: "hold_aaa", isLapse: true })).toEqual(settled);
    expect(await apply({ kind: "settle", holdId: "hold_aaa", amount: 9n })).toEqual(settled);
    const replayed = { kind: "reserved", state: "settled", held: 60n, replayed: true };
    expect(await apply(reserve("hold_aaa", 60n))).toEqual(replayed);
    expect(await second.wallet(usd)).toMatchObject({ free: 80n, held: 0n, spent: 20n, n: 3 });
    const entries = await second.entries(usd, { holdId: "hold_aaa", limit: 10 });
    expect(entries.map(({ operationId }) => operationId)).toEqual([
      "charge:hold_aaa",
      "hold_aaa:open",
    ]);
    expect(entries[0]).toMatchObject({ kind: "draw", ref: "req", record: told, spentDelta: 20n });
    expect(entries[1]?.record).toBe("");
    expect(await differences(second)).toEqual([]);
  });

  test("a draw whose hold is closed takes all of it out of what is free, or nothing, for good", async () => {
    await apply(grant("g", 100n));
    const fromFree = { keyLimit: { amount: 30n, period: "month" } } as const;
    const outcomes = await store.apply(
      usd,
      [
        reserve("hold_aaa", 60n),
        { kind: "release", holdId: "hold_aaa", isLapse: true },
        { ...draw("hold_aaa", 20n), fromFree },
        // Three charges: above what the key has left; by the sweep, which takes nothing; by an older release, which decides.
        { ...draw("hold_bbb", 11n), fromFree },
        { ...draw("hold_bbb", 1n), fromFree },
        draw("hold_ccc", 1n),
        reserve("hold_ccc", 1n),
        reserve("hold_ddd", 10n),
        { kind: "settle", holdId: "hold_ddd", amount: 4n },
        { ...draw("hold_ddd", 9n), fromFree },
      ],
      now,
    );
    expect(outcomes.map((one) => ("charged" in one ? one.charged : one.kind))).toEqual([
      ...["reserved", 0n, 20n, 0n, 0n, 0n, "refused", "reserved", 4n, 4n],
    ]);
    const figures = { free: 76n, held: 0n, spent: 24n, openHolds: 0 };
    expect(await second.wallet(usd)).toMatchObject(figures);
    expect(await differences(second)).toEqual([]);
  });

  test("two clients at once never spend what is not there", async () => {
    await apply(grant("g", 1_000n));
    const attempts = Array.from({ length: 150 }, (_, i) =>
      [store, second][i % 2]?.apply(usd, [reserve(`hold_${i}xxx`, 10n)], now),
    );
    const kinds = (await Promise.all(attempts)).map((outcomes) => outcomes?.[0]?.kind);
    expect(kinds.filter((kind) => kind === "reserved")).toHaveLength(100);
    expect(await store.wallet(usd)).toMatchObject({ free: 0n, held: 1_000n, openHolds: 100 });
    expect(await differences(store)).toEqual([]);
  });

  test("the same operations from two clients at once count once", async () => {
    await apply(grant("g", 1_000n));
    const operations: Operation[] = [
      reserve("hold_aaa", 10n),
      { kind: "settle", holdId: "hold_aaa", amount: 4n },
      grant("h", 5n),
    ];
    await Promise.all(
      [store, second, store, second].map((client) => client.apply(usd, operations, now)),
    );
    expect(await store.wallet(usd)).toMatchObject({ free: 1_001n, held: 0n, spent: 4n, n: 4 });
  });

  test("units and accounts are wallets of their own", async () => {
    for (const wallet of [usd, credits, other]) await store.apply(wallet, [grant("g", 5n)], now);
    await store.apply(credits, [reserve("hold_aaa", 5n)], now);
    expect(await store.wallet(usd)).toMatchObject({ free: 5n, held: 0n });
    expect(await store.wallet(credits)).toMatchObject({ free: 0n, held: 5n });
    expect((await snapshots(store)).map(({ ref }) => ref)).toHaveLength(3);
    expect((await snapshots(store, "acct_a")).map(({ ref }) => ref.unit).sort()).toEqual<Unit[]>([
      "credits",
      "usd_micros",
    ]);
    expect(await snapshots(store, "acct_c")).toEqual([]);
  });

  test("of many wallets at once each counts for itself, those that another client overtook too", async () => {
    const many = Array.from({ length: 30 }, (_, i) => ({ ...usd, accountId: `acct_many_${i}` }));
    const all = (client: LedgerStore, operation: Operation, refs = many) =>
      Promise.all(refs.map(async (ref) => (await client.apply(ref, [operation], now))[0]));
    await all(store, grant("g", 100n));
    await all(store, reserve("hold_aaa", 60n));
    const overtaken = many.filter((_, i) => i % 3 === 0);
    await all(second, reserve("hold_bbb", 30n), overtaken);
    const settled = await all(store, { kind: "settle", holdId: "hold_aaa", amount: 20n });
    const charged = { kind: "closed", state: "settled", charged: 20n, replayed: false };
    expect(settled).toEqual(many.map(() => charged));
    for (const ref of many) {
      const held = overtaken.includes(ref) ? 30n : 0n;
      expect(await second.wallet(ref)).toMatchObject({ free: 80n - held, held, spent: 20n });
    }
    expect(await differences(store)).toEqual([]);
  });

  test("amounts up to the bounds of int64 come back as they were", async () => {
    const amount = 9_000_000_000_000_000n;
    for (let i = 0; i < 3; i++) await apply(grant(`g${i}`, amount + 1n));
    await apply(reserve("hold_aaa", 3n * amount + 2n));
    expect(await store.wallet(usd)).toMatchObject({ free: 1n, held: 3n * amount + 2n });
    const settle = { kind: "settle", holdId: "hold_aaa", amount: 2n ** 63n - 1n } as const;
    expect(await apply(settle)).toMatchObject({ charged: 3n * amount + 2n });
    expect(await differences(store)).toEqual([]);
  });

  describe("lists", () => {
    beforeEach(async () => {
      await apply(grant("g", 1_000n));
      await store.apply(other, [grant("g", 1_000n)], now);
      for (let i = 0; i < 5; i++) {
        const holds = [{ ...reserve(`hold_${i}aaa`, 1n), checkAt: now + 1_000 - i }];
        await store.apply(i % 2 === 0 ? usd : other, holds, now + i);
      }
    });

    test("due holds come by check time, only when due, and page by page", async () => {
      expect((await store.dueHolds({ now: now + 995, limit: 9 })).items).toEqual([]);
      const first = await store.dueHolds({ now: now + 999, limit: 2 });
      expect(ids(first.items)).toEqual(["hold_4aaa", "hold_3aaa"]);
      const rest = await store.dueHolds({ now: now + 999, limit: 9, after: first.next });
      expect(ids(rest.items)).toEqual(["hold_2aaa", "hold_1aaa"]);
      expect(rest.next).toBeUndefined();
      expect(rest.items[1]?.wallet).toEqual(other);
    });

    test("a hold that was extended, or ended, is not due", async () => {
      const checkAt = now + 5_000;
      await apply({ kind: "extend", holdId: "hold_4aaa", step: 1, checkAt });
      await apply({ kind: "release", holdId: "hold_2aaa" });
      const { items } = await store.dueHolds({ now: now + 1_000, limit: 9 });
      expect(ids(items)).toEqual(["hold_3aaa", "hold_1aaa", "hold_0aaa"]);
      const later = await store.dueHolds({ now: checkAt, limit: 9 });
      expect(later.items.at(-1)).toMatchObject({ holdId: "hold_4aaa", checkAt, extensions: 1 });
    });

    test("open holds come oldest first, of one account or all", async () => {
      const first = await store.holds({ limit: 3 });
      expect(ids(first.items)).toEqual(["hold_0aaa", "hold_1aaa", "hold_2aaa"]);
      const rest = await store.holds({ limit: 3, after: first.next });
      expect(ids(rest.items)).toEqual(["hold_3aaa", "hold_4aaa"]);
      const { items, next } = await store.holds({ limit: 2, accountId: other.accountId });
      expect(ids(items)).toEqual(["hold_1aaa", "hold_3aaa"]);
      expect(next).toBeUndefined();
      await apply({ ...reserve("hold_5aaa", 1n), keyId: "key_b" } as Operation);
      await apply({ ...reserve("hold_6aaa", 1n), keyId: "key_b" } as Operation);
      const query = { limit: 1, accountId: usd.accountId, keyId: "key_b" };
      const ofKey = await store.holds(query);
      expect(ids(ofKey.items)).toEqual(["hold_5aaa"]);
      const last = await store.holds({ ...query, after: ofKey.next });
      expect(ids(last.items)).toEqual(["hold_6aaa"]);
      expect(last.next).toBeUndefined();
      await expect(store.holds({ limit: 9, after: "nonsense" })).rejects.toMatchObject({
        reason: ErrorReason.INVALID_ARGUMENT,
      });
    });

    test("the oldest open hold is known, of all wallets, and whether there is one", async () => {
      expect(await store.oldestHold()).toBe(now);
      // Its next check is later than the others', but it is still the oldest.
      await apply({ kind: "extend", holdId: "hold_0aaa", step: 1, checkAt: now + 90_000 });
      expect(await store.oldestHold()).toBe(now);
      await apply({ kind: "release", holdId: "hold_0aaa" });
      expect(await store.oldestHold()).toBe(now + 1);
      for (const n of [2, 4]) await apply({ kind: "settle", holdId: `hold_${n}aaa`, amount: 1n });
      expect(await store.oldestHold()).toBe(now + 1);
      for (const n of [1, 3]) {
        await store.apply(other, [{ kind: "release", holdId: `hold_${n}aaa` }], now);
      }
      expect(await store.oldestHold()).toBeUndefined();
    });

    test("entries come newest first, of one hold or all", async () => {
      await apply({ kind: "settle", holdId: "hold_2aaa", amount: 1n });
      const numbers = async (query: { holdId?: string; below?: number; limit: number }) =>
        (await store.entries(usd, query)).map(({ n }) => n);
      expect(await numbers({ limit: 9 })).toEqual([5, 4, 3, 2, 1]);
      expect(await numbers({ limit: 2, below: 4 })).toEqual([3, 2]);
      expect(await numbers({ limit: 9, holdId: "hold_2aaa" })).toEqual([5, 3]);
      expect(await numbers({ limit: 9, holdId: "hold_2aa" })).toEqual([]);
      const [settled] = await store.entries(usd, { limit: 1 });
      expect(settled).toMatchObject({ kind: "settle", holdId: "hold_2aaa", heldDelta: -1n });
    });
  });

  test("a hold with a least amount takes what there is, and a repeat reads what it took", async () => {
    await apply(grant("g", 100n));
    const wide = { ...reserve("hold_wide", 500n), least: 60n };
    const opened = { kind: "reserved", state: "open", held: 100n };
    expect(await apply({ ...wide, least: 101n })).toEqual({
      ...refused(ErrorReason.INSUFFICIENT_BALANCE),
      metadata: { required: "101", spendable: "100" },
    });
    expect(await apply(wide)).toEqual({ ...opened, replayed: false });
    await apply(grant("h", 50n));
    expect(await apply(wide)).toEqual({ ...opened, replayed: true });
    // A repeat with the held amount is the same request too.
    expect(await apply(reserve("hold_wide", 100n))).toEqual({ ...opened, replayed: true });
    expect(await apply(reserve("hold_wide", 500n))).toEqual(
      refused(ErrorReason.OPERATION_MISMATCH),
    );
    expect(await store.wallet(usd)).toMatchObject({ free: 50n, held: 100n });
    expect(await apply({ kind: "settle", holdId: "hold_wide", amount: 500n })).toMatchObject({
      charged: 100n,
    });
    expect(await differences(store)).toEqual([]);
  });

  test("of a key with a limit it takes what the limit leaves", async () => {
    await apply(grant("g", 1_000n));
    await apply(reserve("hold_first", 70n));
    const limited = {
      ...reserve("hold_more", 500n),
      keyLimit: { amount: 100n, period: "month" } as const,
    };
    expect(await apply(limited)).toEqual({
      ...refused(ErrorReason.KEY_LIMIT_EXCEEDED),
      metadata: { limit: "100", required: "500", spendable: "30" },
    });
    expect(await apply({ ...limited, least: 30n })).toMatchObject({ state: "open", held: 30n });
    expect(await apply({ ...limited, holdId: "hold_less", least: 0n })).toMatchObject({ held: 0n });
    expect(await apply({ ...limited, holdId: "hold_none", least: 1n })).toMatchObject({
      metadata: { required: "1", spendable: "0" },
    });
    expect(await differences(store)).toEqual([]);
  });

  test("many at once with a least amount share no money", async () => {
    await apply(grant("g", 100n));
    const wide = (i: number) => ({ ...reserve(`hold_${i}wide`, 70n), least: 20n });
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, i) => (i % 2 ? store : second).apply(usd, [wide(i)], now)),
    );
    const held = outcomes.flat().flatMap((one) => (one.kind === "reserved" ? [one.held] : []));
    expect(held.sort()).toEqual([30n, 70n]);
    expect(await store.wallet(usd)).toMatchObject({ free: 0n, held: 100n });
  });

  test("at most 1,000 holds of a wallet are open", async () => {
    await apply(grant("g", 1n));
    for (let i = 0; i < 1_000; i += 200) {
      const holds = Array.from({ length: 200 }, (_, k) => reserve(`hold_${i + k}xxx`, 0n));
      await store.apply(usd, holds, now);
    }
    const full = refused(ErrorReason.TOO_MANY_OPEN_REQUESTS);
    expect(await apply(reserve("hold_more", 0n))).toMatchObject({
      ...full,
      metadata: { limit: "1000", retry_after_ms: "5000" },
    });
    await apply({ kind: "release", holdId: "hold_7xxx" });
    expect(await apply(reserve("hold_more", 0n))).toMatchObject({ state: "open" });
    const { holds } = (await snapshots(store))[0] ?? { holds: [] };
    expect(holds).toHaveLength(1_000);
  });

  async function apply(operation: Operation): Promise<Outcome | undefined> {
    return (await store.apply(usd, [operation], now))[0];
  }
}

function grant(grantId: string, amount: bigint): Operation {
  return { kind: "grant", grantId, amount };
}

function reserve(holdId: string, amount: bigint): Reserve {
  const content = { holdKind: "text", keyId: "key_a", ref: "req", checkAt: now + 60_000 } as const;
  return { kind: "reserve", holdId, amount, ...content };
}

function draw(holdId: string, amount: bigint): Draw {
  return { kind: "draw", holdId, amount, keyId: "key_a", record: "" };
}

function refused(reason: ErrorReason) {
  return { kind: "refused", reason, metadata: expect.any(Object) };
}

function ids(holds: readonly WalletHold[]): string[] {
  return holds.map(({ holdId }) => holdId);
}

async function snapshots(store: LedgerStore, accountId?: string): Promise<WalletSnapshot[]> {
  return collect(store.snapshots(accountId));
}

async function differences(store: LedgerStore): Promise<Difference[]> {
  const found: Difference[] = [];
  for (const snapshot of await snapshots(store)) {
    found.push(...(await collect(auditWallet(snapshot, { entries: 0 }))));
  }
  return found;
}

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}
