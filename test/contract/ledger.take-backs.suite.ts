import { beforeEach, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { Operation, Outcome, TakeBack } from "../../services/billing/ledger/operations.ts";
import type { LedgerStore } from "../../services/billing/ledger/store.ts";

const now = Date.UTC(2026, 0, 15, 12);
const usd = { accountId: "acct_a", unit: "usd_micros" } as const;

/** The rules for every store of the ledger about grants that are taken back. `open` gives two clients of one empty store. */
export function takeBackContract(open: () => Promise<[LedgerStore, LedgerStore]>): void {
  let store: LedgerStore;
  let second: LedgerStore;
  beforeEach(async () => {
    [store, second] = await open();
  });

  test("a grant is taken back in parts, from what is free, and never more than it was", async () => {
    await apply(grant("g", 100n), grant("other", 50n), reserve("hold_aaa", 120n));
    expect(await apply(back({ amount: 40n }))).toMatchObject([
      refused(ErrorReason.INSUFFICIENT_BALANCE, { required: "40", spendable: "30" }),
    ]);
    const part = { kind: "takenBack", amount: 30n, entry: 4, replayed: false };
    expect(await apply(back({ amount: 40n, upTo: true }))).toMatchObject([part]);
    expect(await store.wallet(usd)).toMatchObject({ granted: 120n, free: 0n, held: 120n, n: 4 });
    const again = { ...part, replayed: true };
    expect(await applyTo(second, back({ amount: 40n, upTo: true }))).toMatchObject([again]);
    expect(await applyTo(second, back({ amount: 30n }))).toMatchObject([again]);
    expect(await apply(back({ amount: 31n }))).toMatchObject([
      refused(ErrorReason.OPERATION_MISMATCH),
    ]);
    // Nothing is free, so there is nothing to take.
    expect(await apply(back({ takeBackId: "t2", upTo: true }))).toMatchObject([
      refused(ErrorReason.INSUFFICIENT_BALANCE, { spendable: "0" }),
    ]);
    await apply({ kind: "release", holdId: "hold_aaa" });
    expect(await apply(back({ takeBackId: "t2", amount: 71n, upTo: true }))).toMatchObject([
      refused(ErrorReason.INVALID_ARGUMENT, { field: "amount" }),
    ]);
    // Without an amount it is the rest of the grant.
    expect(await apply(back({ takeBackId: "t2" }))).toMatchObject([{ amount: 70n, entry: 6 }]);
    expect(await apply(back({ takeBackId: "t3" }))).toMatchObject([
      refused(ErrorReason.INVALID_ARGUMENT, { field: "entry_number" }),
    ]);
    const figures = { granted: 50n, free: 50n, held: 0n, spent: 0n, month: { spent: 0n }, n: 6 };
    expect(await second.wallet(usd)).toMatchObject(figures);
    const [entry] = await second.entries(usd, { limit: 1 });
    expect(entry).toMatchObject({ kind: "grant", amount: -70n, freeDelta: -70n, ref: "t2" });
    expect(entry).toMatchObject({ holdId: "", keyId: "", record: '{"takeBackOf":1}' });
    await expectSound(second);
  });

  test("it names a grant by its number and id", async () => {
    await apply(grant("g", 100n), grant("other", 50n), reserve("hold_aaa", 1n), back());
    const none = refused(ErrorReason.ENTRY_NOT_FOUND);
    for (const wrong of [{ entry: 2 }, { entry: 3 }, { entry: 9 }, { grantId: "none" }]) {
      expect(await apply(back(wrong))).toMatchObject([none]);
    }
    // Not by what took it back.
    expect(await apply(back({ entry: 4, grantId: "take-back/1/1" }))).toMatchObject([none]);
    // The operator's ids of grants are others.
    expect(await apply(grant("t1", 5n))).toMatchObject([{ kind: "granted", replayed: false }]);
    expect(await apply(grant("g", 100n))).toMatchObject([{ kind: "granted", replayed: true }]);
  });

  test("one grant is taken back 20 times, and no more", async () => {
    await apply(grant("g", 100n));
    const parts = Array.from({ length: 21 }, (_, i) => back({ takeBackId: `p${i}`, amount: 1n }));
    const outcomes = await apply(...parts);
    expect(outcomes.slice(0, 20).every((one) => one.kind === "takenBack")).toBe(true);
    expect(outcomes[20]).toMatchObject(refused(ErrorReason.OPERATION_CONFLICT, { times: "20" }));
    expect(await applyTo(second, ...parts.slice(0, 20))).toMatchObject(
      outcomes.slice(0, 20).map((one) => ({ ...one, replayed: true, wallet: { n: 21 } })),
    );
    await expectSound(store);
  });

  test("credits are taken back likewise", async () => {
    const credits = { ...usd, unit: "credits" } as const;
    await store.apply(credits, [grant("g", 5n)], now);
    const done = await second.apply(credits, [back({ amount: 5n })], now);
    expect(done).toMatchObject([{ kind: "takenBack", amount: 5n }]);
    expect(await store.apply(credits, [reserve("hold_aaa", 1n)], now)).toMatchObject([
      refused(ErrorReason.INSUFFICIENT_CREDITS),
    ]);
    await expectSound(store);
  });

  test("races of two clients: one operation takes once, and money is taken or held, never both", async () => {
    await apply(grant("g", 100n));
    const outcomes = await Promise.all(
      Array.from({ length: 24 }, async (_, i) => {
        const client = i % 2 ? store : second;
        const holdId = `hold_race_${i}`;
        if (i % 3 === 0) return applyTo(client, back({ takeBackId: "same", amount: 40n }));
        if (i % 3 === 1) return applyTo(client, back({ takeBackId: `t${i}`, amount: 15n }));
        const [opened] = await applyTo(client, reserve(holdId, 15n));
        if (opened?.kind !== "reserved") return [];
        const draw = { kind: "draw", holdId, amount: 15n, keyId: "key_a", record: "" } as const;
        return applyTo(client, draw);
      }),
    );
    const all = outcomes.flat();
    // Two clients that make the same entry in the same millisecond both answer that it is new.
    const entries = new Map(
      all.flatMap((one) => (one.kind === "takenBack" ? [[one.entry, one.amount]] : [])),
    );
    const taken = [...entries.values()].reduce((a, b) => a + b, 0n);
    const drawn = all.reduce((sum, one) => (one.kind === "drawn" ? sum + one.charged : sum), 0n);
    const free = 100n - taken - drawn;
    expect(free).toBeLessThan(15n);
    expect(free).toBeGreaterThanOrEqual(0n);
    expect(await store.wallet(usd)).toMatchObject({ granted: 100n - taken, free, spent: drawn });
    await expectSound(second);
  });

  async function apply(...operations: Operation[]): Promise<Outcome[]> {
    return applyTo(store, ...operations);
  }

  async function applyTo(client: LedgerStore, ...operations: Operation[]): Promise<Outcome[]> {
    return client.apply(usd, operations, now);
  }
}

function back(more: Partial<TakeBack> = {}): TakeBack {
  return { kind: "takeBack", grantId: "g", entry: 1, takeBackId: "t1", ...more };
}

function grant(grantId: string, amount: bigint): Operation {
  return { kind: "grant", grantId, amount };
}

function reserve(holdId: string, amount: bigint): Operation {
  const content = { holdKind: "text", keyId: "key_a", ref: "req", checkAt: now + 60_000 } as const;
  return { kind: "reserve", holdId, amount, ...content };
}

function refused(reason: ErrorReason, metadata: Record<string, string> = {}) {
  return { kind: "refused", reason, metadata };
}

async function expectSound(store: LedgerStore): Promise<void> {
  for await (const snapshot of store.snapshots(undefined)) {
    for await (const found of auditWallet(snapshot, { entries: 0 })) expect(found).toBeUndefined();
  }
}
