import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { billingWorld, type Verdict } from "../../test/contract/ledger.world.ts";

let world: Awaited<ReturnType<typeof billingWorld>>;
beforeEach(async () => {
  world = await billingWorld();
  const grant = { accountId: "acct_a", unit: Unit.USD_MICROS, amount: 10_000n, operationId: "g" };
  await world.operator.grant(grant);
});
afterEach(() => world[Symbol.asyncDispose]());

/** Opens a hold that is due in two seconds. */
async function open(holdId: string, kind: HoldKind = HoldKind.TEXT): Promise<void> {
  await world.billing.reserve({
    accountId: "acct_a",
    unit: Unit.USD_MICROS,
    holdId,
    amount: 10n,
    kind,
    keyId: "key_a",
    ref: `ref of ${holdId}`,
    checkTime: timestampFromMs(world.clock.now() + 2_000),
  });
}

async function openHolds(): Promise<string[]> {
  const { holds } = await world.operator.listHolds({});
  return holds.map(({ holdId }) => holdId);
}

/** Moves time second by second. The search of each second has ended before the next. */
async function pass(seconds: number): Promise<void> {
  for (let second = 0; second < seconds; second++) {
    await world.clock.advance(1_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  }
}

const away = () => {
  throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
};

describe("a hold whose check time has passed", () => {
  test("is not asked about before", async () => {
    await open("hold_aaa");
    await pass(1);
    expect(world.owners.asked).toEqual([]);
    await pass(1);
    expect(world.owners.asked).toEqual(["text hold_aaa"]);
  });

  test("is asked about at its kind's owner", async () => {
    await open("hold_aaa", HoldKind.TEXT);
    await open("hold_bbb", HoldKind.SPEECH);
    await open("hold_ccc", HoldKind.JOB);
    await pass(2);
    expect(world.owners.asked.sort()).toEqual([
      "media hold_bbb",
      "media hold_ccc",
      "text hold_aaa",
    ]);
    expect(await openHolds()).toEqual([]);
  });

  test("is settled, released or kept as the owner says", async () => {
    const now = world.clock.now();
    const verdicts: Record<string, Verdict> = {
      hold_aaa: { case: "settleAmount", value: 4n },
      hold_bbb: { case: "release", value: true },
      hold_ccc: { case: "keepUntil", value: timestampFromMs(now + 10_000) },
    };
    world.owners.text = (holdId) => verdicts[holdId] ?? { case: undefined };
    for (const holdId of Object.keys(verdicts)) await open(holdId);
    await pass(2);
    expect(await openHolds()).toEqual(["hold_ccc"]);
    const { usdMicros } = await world.billing.getBalance({ accountId: "acct_a" });
    expect(usdMicros).toMatchObject({ spent: 4n, reserved: 10n, spendable: 9_986n });
    await pass(7);
    expect(world.owners.asked.filter((one) => one.endsWith("hold_ccc"))).toHaveLength(1);
    await pass(1);
    expect(world.owners.asked.filter((one) => one.endsWith("hold_ccc"))).toHaveLength(2);
  });

  test("that is kept until a time in the past is asked about again a second later, not at once", async () => {
    world.owners.text = () => ({ case: "keepUntil", value: timestampFromMs(0) });
    await open("hold_aaa");
    await pass(5);
    expect(world.owners.asked).toHaveLength(4);
    const { holds } = await world.operator.listHolds({});
    expect(timestampMs(holds[0]?.checkTime ?? timestampFromMs(0))).toBe(world.clock.now() + 1_000);
    const { entries } = await world.operator.listEntries({
      accountId: "acct_a",
      holdId: "hold_aaa",
    });
    expect(entries.map(({ operationId }) => operationId)).toEqual([
      "hold_aaa:extend:4",
      "hold_aaa:extend:3",
      "hold_aaa:extend:2",
      "hold_aaa:extend:1",
      "hold_aaa:open",
    ]);
  });

  test("is never released for its age while its owner is away", async () => {
    world.owners.text = away;
    await open("hold_aaa");
    await pass(600);
    expect(await openHolds()).toEqual(["hold_aaa"]);
    // 1, 2, 4, … 60 s between the questions: no owner is overloaded, and none is forgotten.
    expect(world.owners.asked.length).toBeGreaterThan(10);
    expect(world.owners.asked.length).toBeLessThan(20);
    world.owners.text = () => ({ case: "settleAmount", value: 4n });
    await pass(61);
    expect(await openHolds()).toEqual([]);
  });

  test("is not ended by an answer that makes no sense", async () => {
    const answers: Verdict[] = [
      { case: undefined },
      { case: "release", value: false },
      { case: "settleAmount", value: -1n },
    ];
    world.owners.text = (holdId) => answers[Number(holdId.at(-1))] ?? { case: undefined };
    await open("hold_bbb");
    await world.billing.settle({
      accountId: "acct_a",
      unit: Unit.USD_MICROS,
      holdId: "hold_bbb",
      amount: 5n,
    });
    for (const i of [0, 1, 2]) await open(`hold_aa${i}`);
    await pass(5);
    expect(await openHolds()).toHaveLength(3);
    const { usdMicros } = await world.billing.getBalance({ accountId: "acct_a" });
    expect(usdMicros).toMatchObject({ spent: 5n, reserved: 30n });
  });

  test("one that fails does not hide the others, nor does an owner that is away", async () => {
    world.owners.text = away;
    world.owners.media = (holdId) => {
      if (holdId === "hold_bad") throw new Error("a bug of the owner");
      return { case: "release", value: true };
    };
    await open("hold_bad", HoldKind.JOB);
    // More than one search reads, and all of them in front.
    for (let i = 0; i < 300; i++) await open(`text_${i}xxx`);
    await world.clock.advance(1);
    for (let i = 0; i < 3; i++) await open(`jobs_${i}xxx`, HoldKind.JOB);
    await pass(6);
    expect(await openHolds()).toHaveLength(100);
    const { holds } = await world.operator.listHolds({ pageSize: 1_000 });
    expect(holds.filter(({ kind }) => kind === HoldKind.JOB).map((h) => h.holdId)).toEqual([
      "hold_bad",
    ]);
    // An owner that is away is asked about a few of its holds, not all.
    expect(world.owners.asked.filter((one) => one.startsWith("text")).length).toBeLessThan(100);
  });

  test("that was ended meanwhile keeps its first end", async () => {
    world.owners.text = async (holdId) => {
      const ref = { accountId: "acct_a", unit: Unit.USD_MICROS, holdId };
      await world.billing.settle({ ...ref, amount: 3n });
      return { case: "release", value: true };
    };
    await open("hold_aaa");
    await pass(2);
    const release = { accountId: "acct_a", unit: Unit.USD_MICROS, holdId: "hold_aaa" };
    expect(await world.billing.release(release)).toMatchObject({
      state: HoldState.SETTLED,
      chargedAmount: 3n,
      replayed: true,
    });
  });

  test("is asked about no more once the service is stopped", async () => {
    await open("hold_aaa");
    await world.service.drain(AbortSignal.timeout(1_000));
    await pass(5);
    expect(world.owners.asked).toEqual([]);
  });

  test("is counted by its owner's verdict", async () => {
    await open("hold_aaa");
    await pass(2);
    expect(await world.metrics.text()).toContain(
      'genmesh_billing_owner_checks_total{owner="text",verdict="release"} 1',
    );
  });
});

test("the age of the oldest open hold is told, and that there is none", async () => {
  const told = async () =>
    /^genmesh_billing_oldest_hold_seconds (.+)$/m.exec(await world.metrics.text())?.[1];
  world.owners.text = () => ({
    case: "keepUntil",
    value: timestampFromMs(world.clock.now() + 60_000),
  });
  expect(await told()).toBe("0");
  await open("hold_aaa");
  await pass(20);
  await open("hold_bbb");
  await pass(100);
  expect(Number(await told())).toBeGreaterThan(100);
  expect(Number(await told())).toBeLessThanOrEqual(120);
  world.owners.text = () => ({ case: "release", value: true });
  await pass(75);
  expect(await openHolds()).toEqual([]);
  expect(await told()).toBe("0");
});
