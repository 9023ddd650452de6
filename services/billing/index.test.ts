import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import {
  type AuditLedgerResponse,
  EntryKind,
  HoldKind,
  HoldState,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { billingWorld } from "../../test/contract/ledger.world.ts";

let world: Awaited<ReturnType<typeof billingWorld>>;
beforeEach(async () => {
  world = await billingWorld();
});
afterEach(() => world[Symbol.asyncDispose]());

const usd = { accountId: "acct_a", unit: Unit.USD_MICROS };
const credits = { accountId: "acct_a", unit: Unit.CREDITS };

function grant(wallet: { accountId: string; unit: Unit }, amount: bigint, operationId = "op-1") {
  return world.operator.grant({ ...wallet, amount, operationId });
}

function hold(holdId: string, amount: bigint, wallet: { accountId: string; unit: Unit } = usd) {
  return {
    ...wallet,
    holdId,
    amount,
    kind: HoldKind.TEXT,
    keyId: "key_a",
    ref: "req_1",
    checkTime: timestampFromMs(world.clock.now() + 60_000),
  };
}

const refusal = (reason: ErrorReason, metadata: object = {}) =>
  expect.objectContaining({ reason, metadata: expect.objectContaining(metadata) });

describe("balances", () => {
  test("an account without entries has zeros", async () => {
    const { usdMicros, credits } = await world.billing.getBalance({ accountId: "acct_none" });
    const zeros = { available: 0n, reserved: 0n, spendable: 0n, monthSpent: 0n, granted: 0n };
    expect(usdMicros).toMatchObject({ unit: Unit.USD_MICROS, ...zeros, spent: 0n });
    expect(credits).toMatchObject({ unit: Unit.CREDITS, ...zeros, spent: 0n });
  });

  test("available is free and held together, spendable what is free", async () => {
    await grant(usd, 100n);
    await world.billing.reserve(hold("hold_aaa", 30n));
    await world.billing.reserve(hold("hold_bbb", 50n));
    await world.billing.settle({ ...usd, holdId: "hold_bbb", amount: 20n });
    const { usdMicros } = await world.billing.getBalance({ accountId: "acct_a" });
    expect(usdMicros).toMatchObject({
      available: 80n,
      reserved: 30n,
      spendable: 50n,
      monthSpent: 20n,
      granted: 100n,
      spent: 20n,
    });
    await world.clock.leap(31 * 86_400_000);
    const later = await world.billing.getBalance({ accountId: "acct_a" });
    expect(later.usdMicros).toMatchObject({ monthSpent: 0n, spent: 20n });
  });

  test("a grant is added once, and answers with the wallet", async () => {
    expect(await grant(credits, 5n)).toMatchObject({ wallet: { available: 5n }, replayed: false });
    expect(await grant(credits, 5n)).toMatchObject({ wallet: { available: 5n }, replayed: true });
    await expect(grant(credits, 6n)).rejects.toEqual(refusal(ErrorReason.OPERATION_MISMATCH));
    expect(await grant(usd, 6n)).toMatchObject({ wallet: { unit: Unit.USD_MICROS } });
  });
});

describe("refunds", () => {
  const refund = (entryNumber: bigint, more: object = {}) =>
    world.operator.refund({ ...usd, entryNumber, operationId: "r1", ...more });

  test("give a charge back once, with an entry that names it, and the key its limit", async () => {
    await grant(usd, 100n);
    await world.billing.reserve(hold("hold_aaa", 60n));
    await world.billing.settle({ ...usd, holdId: "hold_aaa", amount: 40n });
    const limited = { ...hold("hold_bbb", 10n), keyMonthlyLimit: 45n };
    await expect(world.billing.reserve(limited)).rejects.toEqual(
      refusal(ErrorReason.KEY_LIMIT_EXCEEDED),
    );
    const first = { refundedAmount: 40n, entryNumber: 4n };
    const wallet = { available: 100n, spent: 0n, monthSpent: 0n, granted: 100n };
    expect(await refund(3n)).toMatchObject({ ...first, wallet, replayed: false });
    expect(await refund(3n)).toMatchObject({ ...first, wallet, replayed: true });
    const { keys } = await world.billing.getKeyUsage({ accountId: "acct_a", keyIds: ["key_a"] });
    expect(keys).toMatchObject([{ monthSpent: 0n, spent: 0n, daySpent: 0n, weekSpent: 0n }]);
    expect(await world.billing.reserve(limited)).toMatchObject({ heldAmount: 10n });
    const { entries } = await world.operator.listEntries({
      ...{ accountId: "acct_a", holdId: "hold_aaa" },
    });
    expect(entries[0]).toMatchObject({
      ...{ kind: EntryKind.REFUND, number: 4n, refundOf: 3n, spentDelta: -40n, freeDelta: 40n },
    });
  });

  test("refuse with their reasons", async () => {
    await grant(usd, 100n);
    await world.billing.reserve(hold("hold_aaa", 60n));
    await world.billing.settle({ ...usd, holdId: "hold_aaa", amount: 40n });
    const { ENTRY_NOT_FOUND, INVALID_ARGUMENT, OPERATION_CONFLICT } = ErrorReason;
    await expect(refund(4n)).rejects.toEqual(refusal(ENTRY_NOT_FOUND));
    await expect(refund(3n, credits)).rejects.toEqual(refusal(ENTRY_NOT_FOUND));
    // A grant has no hold, and an opening charges nothing.
    await expect(refund(1n)).rejects.toEqual(refusal(ENTRY_NOT_FOUND));
    await expect(refund(2n)).rejects.toEqual(refusal(ENTRY_NOT_FOUND));
    for (const [field, wrong] of [
      ["entry_number", { entryNumber: 0n }],
      ["amount", { amount: 0n }],
      ["amount", { amount: 41n }],
      ["operation_id", { operationId: "" }],
      ["operation_id", { operationId: "a b" }],
    ] as const) {
      await expect(refund(3n, wrong)).rejects.toEqual(refusal(INVALID_ARGUMENT, { field }));
    }
    await refund(3n, { amount: 1n });
    await expect(refund(3n, { operationId: "r2" })).rejects.toEqual(
      refusal(OPERATION_CONFLICT, { entry: "4" }),
    );
    const asCaller = world.billing.refund({ ...usd, entryNumber: 3n, operationId: "r1" });
    await expect(asCaller).rejects.toEqual(refusal(ErrorReason.CALLER_FORBIDDEN));
  });
});

describe("single operations", () => {
  test("refuse with their reasons", async () => {
    await grant(usd, 100n);
    await grant(credits, 5n);
    const { billing } = world;
    await expect(billing.reserve(hold("hold_aaa", 101n))).rejects.toEqual(
      refusal(ErrorReason.INSUFFICIENT_BALANCE, { required: "101", spendable: "100" }),
    );
    await expect(billing.reserve(hold("hold_aaa", 6n, credits))).rejects.toEqual(
      refusal(ErrorReason.INSUFFICIENT_CREDITS),
    );
    const limited = { ...hold("hold_aaa", 10n), keyMonthlyLimit: 9n };
    await expect(billing.reserve(limited)).rejects.toEqual(refusal(ErrorReason.KEY_LIMIT_EXCEEDED));
    await expect(billing.settle({ ...usd, holdId: "hold_aaa", amount: 1n })).rejects.toEqual(
      refusal(ErrorReason.HOLD_NOT_FOUND),
    );
    await expect(billing.release({ ...usd, holdId: "hold_aaa" })).rejects.toEqual(
      refusal(ErrorReason.HOLD_NOT_FOUND),
    );
  });

  test.each([
    ["account_id", { accountId: "a/b" }],
    ["account_id", { accountId: "" }],
    ["unit", { unit: Unit.UNSPECIFIED }],
    ["hold_id", { holdId: "Hold_aaa" }],
    ["hold_id", { holdId: "short_7" }],
    ["hold_id", { holdId: "a".repeat(41) }],
    ["amount", { amount: -1n }],
    ["kind", { kind: HoldKind.UNSPECIFIED }],
    ["key_id", { keyId: "" }],
    ["ref", { ref: "x".repeat(101) }],
    ["ref", { ref: "a\u0000b" }],
    ["ref", { ref: "\ud800" }],
    ["key_monthly_limit", { keyMonthlyLimit: -1n }],
  ])("a reserve with a broken %s is refused, naming it", async (field, broken) => {
    await expect(world.billing.reserve({ ...hold("hold_aaa", 0n), ...broken })).rejects.toEqual(
      refusal(ErrorReason.INVALID_ARGUMENT, { field }),
    );
  });

  test("a reserve without a check time is refused", async () => {
    const { checkTime: _, ...rest } = hold("hold_aaa", 0n);
    await expect(world.billing.reserve(rest)).rejects.toEqual(
      refusal(ErrorReason.INVALID_ARGUMENT, { field: "check_time" }),
    );
  });

  test.each([
    ["amount", { amount: 0n }],
    ["amount", { amount: 9n * 10n ** 15n + 1n }],
    ["operation_id", { operationId: "" }],
    ["operation_id", { operationId: "a b" }],
    ["operation_id", { operationId: "a".repeat(129) }],
  ])("a grant with a broken %s is refused, naming it", async (field, broken) => {
    const grant = { ...usd, amount: 1n, operationId: "g", ...broken };
    await expect(world.operator.grant(grant)).rejects.toEqual(
      refusal(ErrorReason.INVALID_ARGUMENT, { field }),
    );
  });

  test("money is made with the admin token alone", async () => {
    const grant = { ...usd, amount: 1n, operationId: "g" };
    await expect(world.billing.grant(grant)).rejects.toEqual(refusal(ErrorReason.CALLER_FORBIDDEN));
    const end = { ...usd, holdId: "hold_aaa" };
    await expect(world.billing.endHold(end)).rejects.toEqual(refusal(ErrorReason.CALLER_FORBIDDEN));
  });
});

describe("several operations", () => {
  test("each has its outcome, in order, and none feels another's refusal", async () => {
    await grant(usd, 100n);
    await grant(credits, 10n);
    const { outcomes } = await world.billing.apply({
      operations: [
        { operation: { case: "reserve", value: hold("hold_aaa", 60n) } },
        { operation: { case: "reserve", value: hold("hold_aaa", 6n, credits) } },
        { operation: { case: "reserve", value: hold("hold_bbb", 60n) } },
        { operation: { case: "settle", value: { ...usd, holdId: "bad", amount: 1n } } },
        { operation: { case: undefined } },
        { operation: { case: "settle", value: { ...usd, holdId: "hold_aaa", amount: 7n } } },
        { operation: { case: "release", value: { ...usd, holdId: "hold_aaa" } } },
      ],
    });
    expect(outcomes.map(({ outcome }) => outcome)).toMatchObject([
      { case: "reserve", value: { state: HoldState.OPEN, replayed: false } },
      { case: "reserve", value: { state: HoldState.OPEN, replayed: false } },
      { case: "refusal", value: { reason: ErrorReason.INSUFFICIENT_BALANCE } },
      { case: "refusal", value: { reason: ErrorReason.INVALID_ARGUMENT } },
      { case: "refusal", value: { reason: ErrorReason.INVALID_ARGUMENT } },
      { case: "settle", value: { state: HoldState.SETTLED, chargedAmount: 7n, replayed: false } },
      { case: "release", value: { state: HoldState.SETTLED, chargedAmount: 7n, replayed: true } },
    ]);
    const refused = outcomes[3]?.outcome.value;
    expect(refused).toMatchObject({ metadata: { field: "hold_id" } });
  });

  test("a wallet that cannot be written is refused alone, without detail", async () => {
    const other = { accountId: "acct_b", unit: Unit.USD_MICROS };
    await grant(usd, 10n);
    await grant(other, 10n);
    // Reading moves the newest entries to the journal.
    await world.operator.listEntries({ accountId: "acct_a" });
    // Like a fault of the disk, or of this code: the wallet contradicts its journal.
    world.sqlite.run(
      "INSERT INTO ledger_entry SELECT wallet, n + 1, 'x', kind, hold_kind, key_id, 0, 0, 0, 0, ref, at, 0, hash FROM ledger_entry WHERE wallet = (SELECT id FROM ledger_wallet WHERE account_id = 'acct_a') AND n = 1",
    );
    const { outcomes } = await world.billing.apply({
      operations: [
        { operation: { case: "reserve", value: hold("hold_aaa", 1n) } },
        { operation: { case: "reserve", value: hold("hold_aaa", 1n, other) } },
      ],
    });
    expect(outcomes.map(({ outcome }) => outcome)).toMatchObject([
      { case: "refusal", value: { reason: ErrorReason.INTERNAL_ERROR } },
      { case: "reserve", value: { state: HoldState.OPEN } },
    ]);
    const refused = outcomes[0]?.outcome;
    const { message = "", metadata = {} } = refused?.case === "refusal" ? refused.value : {};
    expect(message).not.toMatch(/UNIQUE|ledger_/);
    expect(world.lines.some((line) => line.includes(metadata.incident ?? "?"))).toBe(true);
  });

  test.each([0, 257])("%i operations are refused as a whole", async (count) => {
    const one = { operation: { case: "release", value: { ...usd, holdId: "hold_aaa" } } } as const;
    await expect(
      world.billing.apply({ operations: Array.from({ length: count }, () => one) }),
    ).rejects.toEqual(refusal(ErrorReason.INVALID_ARGUMENT, { field: "operations" }));
  });
});

describe("the operator", () => {
  beforeEach(async () => {
    await grant(usd, 1_000n);
    await grant(credits, 1_000n);
  });

  test("ends a hold once; the same end again is the same answer, another is a conflict", async () => {
    await world.billing.reserve(hold("hold_aaa", 30n));
    const end = { ...usd, holdId: "hold_aaa", settleAmount: 20n };
    const ended = { state: HoldState.SETTLED, chargedAmount: 20n };
    await expect(world.operator.endHold({ ...end, settleAmount: 31n })).rejects.toEqual(
      refusal(ErrorReason.INVALID_ARGUMENT, { field: "settle_amount" }),
    );
    expect(await world.operator.endHold(end)).toMatchObject(ended);
    expect(await world.operator.endHold(end)).toMatchObject(ended);
    const conflict = refusal(ErrorReason.OPERATION_CONFLICT, { state: "settled", charged: "20" });
    await expect(world.operator.endHold({ ...end, settleAmount: 19n })).rejects.toEqual(conflict);
    const release = { ...usd, holdId: "hold_aaa" };
    await expect(world.operator.endHold(release)).rejects.toEqual(conflict);
    await expect(world.operator.endHold({ ...usd, holdId: "hold_zzz" })).rejects.toEqual(
      refusal(ErrorReason.HOLD_NOT_FOUND),
    );
    await world.billing.reserve(hold("hold_bbb", 30n));
    expect(await world.operator.endHold({ ...usd, holdId: "hold_bbb" })).toMatchObject({
      state: HoldState.RELEASED,
      chargedAmount: 0n,
    });
  });

  test("lists open holds, page by page", async () => {
    for (let i = 0; i < 5; i++) {
      await world.billing.reserve(hold(`hold_${i}aa`, 30n, i % 2 === 0 ? usd : credits));
      await world.clock.advance(10);
    }
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await world.operator.listHolds({ accountId: "acct_a", pageSize: 2, pageToken });
      seen.push(...page.holds.map(({ holdId }) => holdId));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual([0, 1, 2, 3, 4].map((i) => `hold_${i}aa`));
    const { holds } = await world.operator.listHolds({ pageSize: 1 });
    expect(holds[0]).toMatchObject({ ...usd, ref: "req_1", keyId: "key_a", kind: HoldKind.TEXT });
    for (const broken of [{ pageSize: 1_001 }, { pageSize: -1 }, { pageToken: "?" }]) {
      await expect(world.operator.listHolds(broken)).rejects.toEqual(
        refusal(ErrorReason.INVALID_ARGUMENT),
      );
    }
  });

  test("lists entries of both wallets together, newest first, page by page", async () => {
    for (let i = 0; i < 6; i++) {
      await world.clock.advance(10);
      await world.billing.reserve(hold(`hold_${i}aa`, 30n, i % 3 === 0 ? usd : credits));
    }
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await world.operator.listEntries({
        accountId: "acct_a",
        pageSize: 1,
        pageToken,
      });
      seen.push(...page.entries.map((entry) => `${entry.unit} ${entry.number} ${entry.holdId}`));
      pageToken = page.nextPageToken;
    } while (pageToken !== "" && seen.length < 20);
    expect(seen).toEqual([
      "2 5 hold_5aa",
      "2 4 hold_4aa",
      "1 3 hold_3aa",
      "2 3 hold_2aa",
      "2 2 hold_1aa",
      "1 2 hold_0aa",
      "1 1 ",
      "2 1 ",
    ]);
    const query = { accountId: "acct_a", holdId: "hold_3aa" };
    const { entries } = await world.operator.listEntries(query);
    expect(entries).toMatchObject([
      { kind: EntryKind.HOLD, freeDelta: -30n, heldDelta: 30n, spentDelta: 0n, ref: "req_1" },
    ]);
    expect(entries[0]?.hash).toMatch(/^[0-9a-f]{64}$/);
  });

  test("audits: a summary at the end, and each difference before it", async () => {
    await world.billing.reserve(hold("hold_aaa", 30n));
    expect(await audit()).toMatchObject([
      { case: "summary", value: { wallets: 2n, entries: 3n, differences: 0n } },
    ]);
    world.sqlite.run("UPDATE ledger_wallet SET month_spent = 0, n = 3 WHERE unit = 'usd_micros'");
    expect(await audit("acct_a")).toMatchObject([
      {
        case: "difference",
        value: { ...usd, field: "sequence", recorded: expect.stringMatching(/^3 /) },
      },
      { case: "summary", value: { wallets: 2n, entries: 3n, differences: 1n } },
    ]);
    expect(await audit("acct_z")).toMatchObject([{ case: "summary", value: { wallets: 0n } }]);
  });
});

test("what happens is counted, and neither keys nor accounts are labels", async () => {
  await grant(usd, 100n);
  await world.billing.reserve(hold("hold_aaa", 60n));
  await world.billing.reserve(hold("hold_aaa", 60n));
  await world.billing.reserve(hold("hold_bbb", 60n)).catch(() => undefined);
  await world.billing.settle({ ...usd, holdId: "hold_aaa", amount: 70n });
  const text = await world.metrics.text();
  for (const line of [
    'operations_total{unit="usd_micros",operation="reserve",outcome="done"} 1',
    'operations_total{unit="usd_micros",operation="reserve",outcome="replayed"} 1',
    'refusals_total{operation="reserve",reason="INSUFFICIENT_BALANCE"} 1',
    'amount_total{unit="usd_micros",flow="held"} 60',
    'amount_total{unit="usd_micros",flow="charged"} 60',
  ]) {
    expect(text).toContain(`genmesh_billing_${line}`);
  }
  expect(text).not.toMatch(/acct_a|key_a/);
  expect(world.lines.some((line) => line.includes("settlement cut to hold"))).toBe(true);
  expect(world.lines.join()).not.toContain("key_a");
});

test("ready once it was started", async () => {
  expect(world.service.notReady()).toBeUndefined();
  expect(world.service.name).toBe("billing");
});

async function audit(accountId = ""): Promise<AuditLedgerResponse["finding"][]> {
  const all: AuditLedgerResponse["finding"][] = [];
  for await (const { finding } of world.operator.auditLedger({ accountId })) all.push(finding);
  return all;
}
