import { beforeEach, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { auditWallet, type Difference } from "../../services/billing/ledger/audit.ts";
import type {
  Draw,
  Operation,
  Outcome,
  Reserve,
} from "../../services/billing/ledger/operations.ts";
import type { LedgerStore, WalletSnapshot } from "../../services/billing/ledger/store.ts";

const now = Date.UTC(2026, 0, 15, 12);
const usd = { accountId: "acct_a", unit: "usd_micros" } as const;

/** The rules for every store of the ledger about refunds. `open` gives two clients of one empty store. */
export function refundContract(open: () => Promise<[LedgerStore, LedgerStore]>): void {
  let store: LedgerStore;
  let second: LedgerStore;
  beforeEach(async () => {
    [store, second] = await open();
  });

  test("a charge is given back once, and counts as if it had been less from the start", async () => {
    const december = Date.UTC(2025, 11, 31, 23);
    await store.apply(
      usd,
      [
        grant("g", 100n),
        reserve("hold_aaa", 60n),
        { ...draw("hold_aaa", 20n), record: '{"model":"chat","operation":"responses"}' },
        reserve("hold_bbb", 30n),
        { kind: "settle", holdId: "hold_bbb", amount: 30n },
        reserve("hold_ccc", 10n),
        { kind: "release", holdId: "hold_ccc" },
      ],
      december,
    );
    await apply(reserve("hold_ddd", 8n));
    await apply({ kind: "settle", holdId: "hold_ddd", amount: 8n });
    const refund = (holdId: string, entry: number, more: object = {}): Operation => ({
      kind: "refund",
      ...{ holdId, entry, refundId: "r1" },
      ...more,
    });
    const back = { kind: "refunded", amount: 20n, entry: 10, replayed: false };
    expect(await apply(refund("hold_aaa", 3))).toMatchObject(back);
    const [again] = await second.apply(usd, [refund("hold_aaa", 3, { amount: 20n })], now);
    expect(again).toMatchObject({ ...back, replayed: true });
    const wrong: [Operation, ErrorReason][] = [
      [refund("hold_aaa", 3, { refundId: "r2" }), ErrorReason.OPERATION_CONFLICT],
      [refund("hold_aaa", 3, { amount: 5n }), ErrorReason.OPERATION_MISMATCH],
      [refund("hold_bbb", 3), ErrorReason.ENTRY_NOT_FOUND],
      [refund("hold_bbb", 5, { amount: 31n }), ErrorReason.INVALID_ARGUMENT],
      [refund("hold_ccc", 7), ErrorReason.INVALID_ARGUMENT],
      [refund("hold_eee", 1), ErrorReason.ENTRY_NOT_FOUND],
    ];
    for (const [operation, reason] of wrong) {
      expect(await apply(operation)).toMatchObject({ kind: "refused", reason });
    }
    // The refund counts in the month of the charge, not in its own month, which still has its 8.
    const figures = { granted: 100n, free: 62n, held: 0n, spent: 38n, n: 10 };
    const last = { period: "2025-12", spent: 30n };
    const month = { period: "2026-01", spent: 8n, last };
    expect(await second.wallet(usd)).toMatchObject({ ...figures, month });
    expect(await apply(refund("hold_ddd", 9, { amount: 3n }))).toMatchObject({ amount: 3n });
    expect(await second.wallet(usd)).toMatchObject({ free: 65n, spent: 35n, month: { spent: 5n } });
    const [usage] = (await snapshots(second)).map(({ keys }) => keys);
    expect(usage).toMatchObject([{ month: { spent: 5n, last }, held: 0n }]);
    const entries = await second.entries(usd, { holdId: "hold_aaa", limit: 10 });
    expect(entries.map(({ operationId }) => operationId)).toEqual([
      ...["refund:hold_aaa", "charge:hold_aaa", "hold_aaa:open"],
    ]);
    expect(JSON.parse(entries[0]?.record ?? "")).toEqual({
      ...{ refundOf: 3, chargedMs: december, model: "chat", operation: "responses" },
    });
    expect(await differences(second)).toEqual([]);
  });

  test("refunds of one charge from two clients at once give it back once", async () => {
    await apply(grant("g", 100n));
    await apply(reserve("hold_aaa", 60n));
    await apply(draw("hold_aaa", 20n));
    const outcomes = await Promise.all(
      Array.from({ length: 12 }, async (_, i) => {
        const refundId = `r${i}`;
        const refund: Operation = { kind: "refund", holdId: "hold_aaa", entry: 3, refundId };
        return (await (i % 2 ? store : second).apply(usd, [refund], now))[0]?.kind;
      }),
    );
    expect(outcomes.filter((kind) => kind === "refunded")).toHaveLength(1);
    expect(await store.wallet(usd)).toMatchObject({
      free: 100n,
      spent: 0n,
      month: { spent: 0n },
      n: 4,
    });
    expect(await differences(store)).toEqual([]);
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
