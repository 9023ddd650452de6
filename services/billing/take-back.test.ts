import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import {
  type AuditLedgerResponse,
  EntryKind,
  HoldKind,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { billingWorld } from "../../test/contract/ledger.world.ts";

let world: Awaited<ReturnType<typeof billingWorld>>;
beforeEach(async () => {
  world = await billingWorld();
  await world.operator.grant({ ...usd, amount: 100n, operationId: "g" });
  await world.billing.reserve({
    ...{ ...usd, holdId: "hold_aaa", amount: 30n, kind: HoldKind.TEXT, keyId: "key_a" },
    ...{ ref: "req_1", checkTime: timestampFromMs(world.clock.now() + 60_000) },
  });
});
afterEach(() => world[Symbol.asyncDispose]());

const usd = { accountId: "acct_a", unit: Unit.USD_MICROS };
const takeBack = (more: object = {}) =>
  world.operator.takeBack({ ...usd, entryNumber: 1n, operationId: "t1", ...more });

test("takes a grant back, with an entry that names it, and no usage", async () => {
  const wallet = { available: 60n, reserved: 30n, granted: 60n, spent: 0n, monthSpent: 0n };
  const done = { takenAmount: 40n, entryNumber: 3n, wallet };
  expect(await takeBack({ amount: 40n })).toMatchObject({ ...done, replayed: false });
  expect(await takeBack({ amount: 40n })).toMatchObject({ ...done, replayed: true });
  const { entries } = await world.operator.listEntries({ accountId: "acct_a" });
  expect(entries[0]).toMatchObject({
    ...{ kind: EntryKind.GRANT, number: 3n, freeDelta: -40n, ref: "t1", takeBackOf: 1n },
  });
  expect(entries[0]?.record).toBeUndefined();
  expect(entries[2]).toMatchObject({ number: 1n, takeBackOf: 0n });
  const { lines } = await world.billing.listLines({ accountId: "acct_a", kinds: ["grant"] });
  expect(lines).toMatchObject([
    { amount: -40n, balance: 60n, takeBackOf: 1n, keyId: "", id: "" },
    { amount: 100n, balance: 100n, takeBackOf: 0n },
  ]);
  expect(lines[0]?.record).toBeUndefined();
  const days = { startSeconds: 0n, widthSeconds: 86_400, buckets: 7 };
  const { buckets } = await world.billing.getUsage({ accountId: "acct_a", ...days });
  expect(buckets.flatMap(({ results }) => results)).toEqual([]);
  const findings: AuditLedgerResponse["finding"][] = [];
  for await (const { finding } of world.operator.auditLedger({})) findings.push(finding);
  expect(findings).toMatchObject([{ case: "summary", value: { entries: 3n, differences: 0n } }]);
});

test("refuses with its reasons", async () => {
  const { ENTRY_NOT_FOUND, INVALID_ARGUMENT, INSUFFICIENT_BALANCE } = ErrorReason;
  await expect(takeBack()).rejects.toMatchObject({
    reason: INSUFFICIENT_BALANCE,
    metadata: { required: "100", spendable: "70" },
    message: "Only 70 of the balance is free. The rest is held or spent.",
  });
  for (const entryNumber of [2n, 3n]) {
    await expect(takeBack({ entryNumber })).rejects.toMatchObject({ reason: ENTRY_NOT_FOUND });
  }
  await takeBack({ amount: 1n });
  await expect(takeBack({ entryNumber: 3n })).rejects.toMatchObject({ reason: ENTRY_NOT_FOUND });
  for (const [field, wrong] of [
    ["entry_number", { entryNumber: 0n }],
    ["amount", { amount: 0n }],
    ["amount", { amount: 100n, operationId: "t2" }],
    ["operation_id", { operationId: "a b" }],
  ] as const) {
    const refusal = { reason: INVALID_ARGUMENT, metadata: { field } };
    await expect(takeBack(wrong)).rejects.toMatchObject(refusal);
  }
  const asCaller = world.billing.takeBack({ ...usd, entryNumber: 1n, operationId: "t1" });
  await expect(asCaller).rejects.toMatchObject({ reason: ErrorReason.CALLER_FORBIDDEN });
});
