import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason, isRefusal } from "#kit/base/errors.ts";
import type { Database } from "#kit/store/database.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import { usagePageSize } from "../../services/billing/base/limits.ts";
import { billingWorld } from "./ledger.world.ts";

const accountId = "acct_a";
const wallet = { accountId, unit: Unit.USD_MICROS };
const dayMs = 86_400_000;
const { DAILY, WEEKLY, MONTHLY, NEVER } = KeyLimitReset;
const resets = [DAILY, WEEKLY, MONTHLY, NEVER];
const refused = "refused";

/** A database that can be opened again. */
interface Reopened {
  database(): Database;
  /** Removes fields that older releases did not write, because they had only monthly limits. */
  makeOld(): Promise<void>;
  /** Changes one counter of a key by hand. */
  tamper(counter: "day" | "week" | "ever"): Promise<void>;
}

/** Billing's rules for keys' limits, on any store. `open` gives an empty one. */
export function keyLimitContract(open: () => Promise<Reopened>): void {
  describe("the limit of a key", () => {
    test("begins anew at midnight, on Monday, on the first, or never", async () => {
      await using world = await fundedWorld((await open()).database());
      // The world begins on Thursday 2026-01-15, 12:00.
      for (const reset of resets) expect(await spend(world, reset, 100n)).toBe(100n);
      for (const reset of resets) expect(await spend(world, reset, 1n)).toBe(refused);
      await world.clock.leap(dayMs / 2 - 1);
      for (const reset of resets) expect(await spend(world, reset, 1n)).toBe(refused);
      // Friday.
      await world.clock.leap(1);
      expect(await spendEach(world)).toEqual([40n, refused, refused, refused]);
      // Sunday's last moment, then Monday.
      await world.clock.leap(3 * dayMs - 1);
      expect(await spendEach(world)).toEqual([40n, refused, refused, refused]);
      await world.clock.leap(1);
      expect(await spendEach(world)).toEqual([40n, 40n, refused, refused]);
      // A second charge in the same day and week: 80 of 100.
      expect(await spendEach(world)).toEqual([40n, 40n, refused, refused]);
      expect(await spendEach(world)).toEqual([refused, refused, refused, refused]);
      // January's last moment, a Saturday. Then February, in the same week.
      await world.clock.leap(13 * dayMs - 1);
      expect(await spendEach(world)).toEqual([40n, 40n, refused, refused]);
      expect(await spendEach(world)).toEqual([40n, 40n, refused, refused]);
      await world.clock.leap(1);
      expect(await spendEach(world)).toEqual([40n, refused, 40n, refused]);
      // A year later.
      await world.clock.leap(365 * dayMs);
      expect(await spendEach(world)).toEqual([40n, 40n, 40n, refused]);
      expect(await differences(world)).toEqual([]);
    });

    test("is not overdrawn by many at once, of several processes, in any period", async () => {
      const { database } = await open();
      await using world = await fundedWorld(database());
      await using other = await billingWorld(database());
      await Promise.all(
        resets.map(async (reset) => {
          const asked = Array.from({ length: 40 }, (_, i) =>
            spend(i % 2 === 0 ? world : other, reset, 7n, "key_many"),
          );
          return Promise.all(asked);
        }),
      );
      const [usage] = (await world.billing.getKeyUsage({ accountId, keyIds: ["key_many"] })).keys;
      // One key had each of the limits in turn. Charges come to at most 100.
      expect(usage).toMatchObject({ daySpent: 98n, weekSpent: 98n, monthSpent: 98n, spent: 98n });
      expect(await differences(world)).toEqual([]);
    });

    test("counts a refund in the period of its charge", async () => {
      await using world = await fundedWorld((await open()).database());
      for (const reset of resets) await spend(world, reset, 100n);
      await world.clock.leap(dayMs);
      for (const reset of resets) await refundAll(world, keyOf(reset));
      // The day is another one, so the refund does not change it.
      expect(await spend(world, DAILY, 100n)).toBe(100n);
      expect(await spend(world, DAILY, 1n)).toBe(refused);
      for (const reset of [WEEKLY, MONTHLY, NEVER]) {
        expect(await spend(world, reset, 100n)).toBe(100n);
        expect(await spend(world, reset, 1n)).toBe(refused);
      }
      expect(await differences(world)).toEqual([]);
    });

    test("counts on in the right period when a clock comes back that was ahead", async () => {
      await using world = await fundedWorld((await open()).database());
      expect(await spendEach(world)).toEqual([40n, 40n, 40n, 40n]);
      await world.clock.leap(40 * dayMs);
      expect(await spendEach(world)).toEqual([40n, 40n, 40n, 40n]);
      world.clock.set(-40 * dayMs);
      expect(await spendEach(world)).toEqual([40n, 40n, 40n, refused]);
      expect(await spendEach(world)).toEqual([refused, refused, refused, refused]);
      expect(await differences(world)).toEqual([]);
    });

    test("counts what an earlier release charged, however long the journal", async () => {
      const state = await open();
      await using before = await fundedWorld(state.database());
      for (let i = 0; i < usagePageSize; i += 50) {
        await Promise.all(
          Array.from({ length: 50 }, () => spend(before, undefined, 1n, "key_old")),
        );
      }
      await before.clock.leap(dayMs);
      await spend(before, undefined, 30n, "key_old");
      await before.service[Symbol.asyncDispose]();
      await state.makeOld();
      await using world = await billingWorld(state.database());
      world.clock.set(before.clock.now() - world.clock.now());
      const old = BigInt(usagePageSize) + 30n;
      const left = async (reset: KeyLimitReset, limit: bigint) => {
        const holdId = nextHold();
        const { heldAmount } = await reserve(world, { holdId, reset, limit, key: "key_old" });
        await world.billing.release({ ...wallet, holdId });
        return heldAmount;
      };
      expect(await differences(world)).toEqual([]);
      // All are requested at once, over the whole journal, while other keys are charged.
      const others = Array.from({ length: 20 }, () => spend(world, DAILY, 2n));
      expect(await Promise.all([left(DAILY, 100n), left(DAILY, 30n)])).toContain(0n);
      expect(await left(DAILY, 100n)).toBe(70n);
      expect(await left(WEEKLY, old + 3n)).toBe(3n);
      expect(await left(NEVER, old + 5n)).toBe(5n);
      expect(await left(MONTHLY, old + 7n)).toBe(7n);
      await Promise.all(others);
      const [usage] = (await world.billing.getKeyUsage({ accountId, keyIds: ["key_old"] })).keys;
      expect(usage).toMatchObject({ daySpent: 30n, weekSpent: old, monthSpent: old, spent: old });
      expect(await differences(world)).toEqual([]);
    });

    test.each(["day", "week", "ever"] as const)("is audited: the %s", async (counter) => {
      const state = await open();
      await using world = await fundedWorld(state.database());
      await spend(world, DAILY, 5n);
      expect(await differences(world)).toEqual([]);
      await state.tamper(counter);
      expect(await differences(world)).toEqual(["key"]);
    });
  });
}

type World = Awaited<ReturnType<typeof billingWorld>>;

async function fundedWorld(database: Database): Promise<World> {
  const world = await billingWorld(database);
  await world.operator.grant({ ...wallet, amount: 1_000_000n, operationId: "funds" });
  return world;
}

let holds = 0;
const keyByHold = new Map<string, string>();
const nextHold = () => `hold_${String(++holds).padStart(8, "0")}`;
const keyOf = (reset: KeyLimitReset) => `key_${reset}`;

interface Wanted {
  holdId: string;
  /** Undefined for a key without a limit. */
  reset: KeyLimitReset | undefined;
  limit: bigint;
  key: string;
  amount?: bigint;
}

/** Holds the amount, or as much as the limit allows. */
function reserve(world: World, { holdId, reset, limit, key, amount }: Wanted) {
  return world.billing.reserve({
    ...wallet,
    ...{ holdId, amount: amount ?? limit, kind: HoldKind.TEXT, keyId: key, ref: holdId },
    checkTime: timestampFromMs(world.clock.now() + 1_000 * dayMs),
    ...(reset === undefined ? {} : { keyMonthlyLimit: limit, keyLimitReset: reset }),
    ...(amount === undefined ? { leastAmount: 0n } : {}),
  });
}

/** Charges a key with a limit of 100. */
async function spend(
  world: World,
  reset: KeyLimitReset | undefined,
  amount: bigint,
  key = keyOf(reset ?? MONTHLY),
): Promise<bigint | typeof refused> {
  const holdId = nextHold();
  keyByHold.set(holdId, key);
  try {
    await reserve(world, { holdId, reset, limit: 100n, key, amount });
  } catch (error) {
    if (isRefusal(error, ErrorReason.KEY_LIMIT_EXCEEDED)) return refused;
    throw error;
  }
  const { chargedAmount } = await world.billing.settle({ ...wallet, holdId, amount });
  return chargedAmount;
}

/** Charges 40 to the key of each limit. */
function spendEach(world: World) {
  return Promise.all(resets.map((reset) => spend(world, reset, 40n)));
}

/** Refunds all charges of a key. */
async function refundAll(world: World, keyId: string): Promise<void> {
  const { entries } = await world.operator.listEntries({ accountId, pageSize: 1_000 });
  for (const { number, spentDelta, holdId } of entries) {
    if (spentDelta <= 0n || keyByHold.get(holdId) !== keyId) continue;
    await world.operator.refund({ ...wallet, entryNumber: number, operationId: `r${number}` });
  }
}

async function differences(world: World): Promise<string[]> {
  const fields: string[] = [];
  for await (const { finding } of world.operator.auditLedger({ accountId })) {
    if (finding.case === "difference") fields.push(finding.value.field);
  }
  return fields;
}
