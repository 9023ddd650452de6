import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import type { Database } from "#kit/store/database.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { countedAtOnce } from "../../services/billing/base/limits.ts";
import { billingWorld } from "./ledger.world.ts";

const accountId = "acct_a";
const wallet = { accountId, unit: Unit.USD_MICROS };
const dayMs = 86_400_000;

/** Billing's rules for keys' usage, on any store. `open` gives an empty one that can be opened again. */
export function keyUsageContract(open: () => Promise<() => Database>): void {
  describe("the usage of keys", () => {
    test("is that of the ledger, by day, week from Monday, month and altogether", async () => {
      await using world = await billingWorld((await open())());
      await world.operator.grant({ ...wallet, amount: 1_000_000n, operationId: "op" });
      const spend = spender(world);
      // The world begins on Thursday 2026-01-15.
      await spend("key_a", 7n);
      await spend("key_b", 100n);
      expect(await usage(world, "key_a")).toEqual([7n, 7n, 7n, 7n, 0n]);
      expect(await usage(world, "key_b")).toEqual([100n, 100n, 100n, 100n, 0n]);
      expect(await usage(world, "key_none")).toEqual([0n, 0n, 0n, 0n, 0n]);
      await world.clock.leap(3 * dayMs);
      await spend("key_a", 5n);
      expect(await usage(world, "key_a")).toEqual([5n, 12n, 12n, 12n, 0n]);
      await world.clock.leap(dayMs);
      expect(await usage(world, "key_a")).toEqual([0n, 0n, 12n, 12n, 0n]);
      await world.clock.leap(13 * dayMs);
      await spend("key_a", 1n);
      expect(await usage(world, "key_a")).toEqual([1n, 1n, 1n, 13n, 0n]);
      await reserve(world, "key_a", 40n);
      expect(await usage(world, "key_a")).toEqual([1n, 1n, 1n, 13n, 40n]);
      const both = await world.billing.getKeyUsage({ accountId, keyIds: ["key_b", "key_a"] });
      expect(both.keys.map(({ keyId, spent }) => [keyId, spent])).toEqual([
        ["key_b", 100n],
        ["key_a", 13n],
      ]);
      const other = await world.billing.getKeyUsage({ accountId: "acct_b", keyIds: ["key_a"] });
      expect(other.keys).toMatchObject([{ spent: 0n, monthSpent: 0n, held: 0n }]);
    });

    test("is lowered by a refund on the day of its charge", async () => {
      await using world = await billingWorld((await open())());
      await world.operator.grant({ ...wallet, amount: 1_000_000n, operationId: "op" });
      const spend = spender(world);
      await spend("key_a", 7n);
      await world.clock.leap(dayMs);
      await spend("key_a", 5n);
      expect(await usage(world, "key_a")).toEqual([5n, 12n, 12n, 12n, 0n]);
      // Grant, hold, charge: the third entry is the first charge.
      await world.operator.refund({ ...wallet, entryNumber: 3n, amount: 4n, operationId: "back" });
      expect(await usage(world, "key_a")).toEqual([5n, 8n, 8n, 8n, 0n]);
      await world.clock.leap(7 * dayMs);
      await world.operator.refund({ ...wallet, entryNumber: 5n, operationId: "back" });
      expect(await usage(world, "key_a")).toEqual([0n, 0n, 3n, 3n, 0n]);
    });

    test("is the same after a start, over a journal of several pages, asked at once", async () => {
      const database = await open();
      await using world = await billingWorld(database());
      await world.operator.grant({ ...wallet, amount: 1_000_000n, operationId: "op" });
      const spend = spender(world);
      // Two entries each.
      const count = Math.ceil(countedAtOnce / 2) + 10;
      for (let i = 0; i < count; i += 50) {
        await Promise.all(
          Array.from({ length: Math.min(50, count - i) }, () => spend("key_a", 3n)),
        );
      }
      const total = BigInt(count) * 3n;
      const asked = await Promise.all([1, 2, 3].map(() => usage(world, "key_a")));
      for (const one of asked) expect(one).toEqual([total, total, total, total, 0n]);
      await using next = await billingWorld(database());
      expect(await usage(next, "key_a")).toEqual([total, total, total, total, 0n]);
      await spend("key_a", 1n);
      expect((await usage(next, "key_a"))[3]).toBe(total + 1n);
    });
  });
}

type World = Awaited<ReturnType<typeof billingWorld>>;

let holds = 0;

async function reserve(world: World, keyId: string, amount: bigint): Promise<string> {
  const holdId = `hold_${String(++holds).padStart(8, "0")}`;
  const checkTime = timestampFromMs(world.clock.now() + 100 * dayMs);
  await world.billing.reserve({
    ...wallet,
    ...{ holdId, amount, kind: HoldKind.TEXT, keyId, ref: "r", checkTime },
  });
  return holdId;
}

/** Charges a key. */
function spender(world: World) {
  return async (keyId: string, amount: bigint): Promise<void> => {
    const holdId = await reserve(world, keyId, amount + 2n);
    await world.billing.settle({ ...wallet, holdId, amount });
  };
}

/** The figures of a day, a week, a month and of all time, and the held amount. */
async function usage(world: World, keyId: string) {
  const [one] = (await world.billing.getKeyUsage({ accountId, keyIds: [keyId] })).keys;
  return [one?.daySpent, one?.weekSpent, one?.monthSpent, one?.spent, one?.held];
}
