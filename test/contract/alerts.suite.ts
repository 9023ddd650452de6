import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { beforeEach, describe, expect, test } from "vitest";
import type { Database } from "#kit/store/database.ts";
import { HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import type { Alert } from "../../services/billing/alerts/alert.ts";
import type { AlertStore, WaitingQuery } from "../../services/billing/alerts/alert-store.ts";
import { createAlertStore } from "../../services/billing/alerts/store-documents.ts";
import { maxAlertsKept } from "../../services/billing/base/limits.ts";
import { billingWorld } from "./ledger.world.ts";

const accountId = "acct_a";
const wallet = { accountId, unit: Unit.USD_MICROS };
const dayMs = 86_400_000;

/** Billing's rules for alerts, on any store. `open` gives an empty database that can be opened again. */
export function alertContract(open: () => Promise<() => Database>): void {
  describe("alerts that are kept", () => {
    let store: AlertStore;
    let second: AlertStore;
    beforeEach(async () => {
      const database = await open();
      store = createAlertStore(database());
      second = createAlertStore(database());
      await store.open();
      await second.open();
    });
    const alert = (alertId: string, more: Partial<Alert> = {}): Alert => ({
      ...{ alertId, accountId, keyId: "", type: "balance.low", body: "{}", at: 5 },
      forgetAt: 10,
      ...more,
    });
    const waiting = async (more: Partial<WaitingQuery> = {}) => {
      const found = await store.waiting({ afterAccount: "", accounts: 10, each: 10, ...more });
      return found.map((one) => one.alertId);
    };

    test("one id is one alert, waiting until it ends, once and for all", async () => {
      const added = [store, second, store].map((one) =>
        one.add([alert("evt_a"), alert("evt_b", { at: 6 })]),
      );
      await Promise.all(added);
      expect(await waiting()).toEqual(["evt_a", "evt_b"]);
      expect(await waiting({ each: 1 })).toHaveLength(1);
      const one = { afterAccount: "", accounts: 1, each: 1 };
      expect((await second.waiting(one))[0]).toEqual(alert("evt_a"));
      await store.end("evt_a");
      await second.end("evt_a");
      await store.end("evt_none");
      await second.add([alert("evt_a")]);
      expect(await waiting()).toEqual(["evt_b"]);
    });

    test("the oldest come first, and what has ended is forgotten when its time is over", async () => {
      await store.add([alert("evt_b", { at: 7 }), alert("evt_a", { at: 9 })]);
      await store.add([alert("evt_c", { at: 1, forgetAt: undefined })]);
      expect(await waiting()).toEqual(["evt_c", "evt_b", "evt_a"]);
      for (const id of ["evt_a", "evt_c"]) await store.end(id);
      await store.forget(9, 10);
      await store.add([alert("evt_a")]);
      expect(await waiting()).toEqual(["evt_b"]);
      await store.forget(10, 10);
      // A forgotten alert can be added again. Waiting alerts, and those that are kept for ever, are not forgotten.
      await store.add([alert("evt_a"), alert("evt_c")]);
      expect(await waiting()).toEqual(["evt_a", "evt_b"]);
    });

    test("accounts take turns, and have so many at most", async () => {
      const many = Array.from({ length: maxAlertsKept + 2 }, (_, i) =>
        alert(`evt_${i}`, { at: i }),
      );
      expect(await store.add(many)).toBe(2);
      for (const other of ["acct_b", "acct_c"]) {
        expect(await store.add([alert(`evt_${other}`, { accountId: other })])).toBe(0);
      }
      const turns = { accounts: 2, each: 2 };
      expect(await waiting(turns)).toEqual(["evt_0", "evt_1", "evt_acct_b"]);
      expect(await waiting({ ...turns, afterAccount: "acct_b" })).toEqual(["evt_acct_c"]);
      expect(await waiting({ ...turns, afterAccount: "acct_c" })).toEqual([]);
    });

    test("no change of an account's settings is lost, and erasing takes all of it", async () => {
      const limit = { usdMicros: 9_007_199_254_740_993n, since: 3 };
      await Promise.all(
        Array.from({ length: 20 }, (_, i) =>
          (i % 2 === 0 ? store : second).change(accountId, (before) => ({
            ...before,
            keys: { ...before.keys, [`key_${i}`]: limit },
          })),
        ),
      );
      const full = { webhookUrl: "https://example.com", lowBalance: limit };
      const { keys } = await second.change(accountId, (before) => ({ ...before, ...full }));
      expect(Object.keys(keys)).toHaveLength(20);
      expect(await store.settings(accountId)).toEqual({ ...full, keys });
      expect(await store.settings("acct_b")).toEqual({ keys: {} });
      await store.add([alert("evt_a"), alert("evt_b", { accountId: "acct_b" })]);
      await second.erase(accountId);
      expect(await store.settings(accountId)).toEqual({ keys: {} });
      expect(await waiting()).toEqual(["evt_b"]);
    });
  });

  describe("alerts of an account", () => {
    test("each fall below a balance is found once, by however many processes, and after a crash", async () => {
      const database = await open();
      await using world = await fundedWorld(database());
      await using other = await billingWorld(database());
      await setLowBalance(world, 950n);
      for (let i = 0; i < 4; i++) await charge(world, 20n);
      // Nothing is counted yet. Both processes find the same alerts, like one process that counts again after a crash.
      await Promise.all([world, other].map((one) => one.billing.listLines({ accountId })));
      const [found, ...more] = await waitingIn(world);
      expect(more).toEqual([]);
      expect(JSON.parse(found?.body ?? "")).toMatchObject({
        type: "balance.low",
        data: { accountId, keyId: null, availableUsdMicros: 940, lowBalanceUsdMicros: 950 },
      });
      expect(found?.accountWebhookUrl).toBe("https://example.com/hook");
      // A hold does not lower the balance. A grant raises it.
      await hold(world, 100n);
      await world.operator.grant({ ...wallet, amount: 30n, operationId: "more" });
      await charge(world, 5n);
      await charge(world, 5n);
      await world.billing.listLines({ accountId });
      const ids = (await waitingIn(world)).map(({ alertId }) => alertId);
      expect(new Set(ids).size).toBe(2);
      for (const alertId of ids) await other.billing.endAlert({ alertId });
      expect(await waitingIn(world)).toEqual([]);
    });

    test("a grant that is taken back lowers the balance too", async () => {
      await using world = await fundedWorld((await open())());
      await setLowBalance(world, 950n);
      const back = { ...wallet, entryNumber: 1n, amount: 51n, operationId: "wrong" };
      await world.operator.takeBack(back);
      const { lines } = await world.billing.listLines({ accountId });
      expect(lines[0]).toMatchObject({
        kind: "grant",
        amount: -51n,
        balance: 949n,
        takeBackOf: 1n,
      });
      const [found, ...more] = await waitingIn(world);
      expect(more).toEqual([]);
      expect(JSON.parse(found?.body ?? "")).toMatchObject({
        ...{ type: "balance.low", data: { availableUsdMicros: 949 } },
      });
    });

    test("what fell before a limit was set is not told", async () => {
      await using world = await fundedWorld((await open())());
      await charge(world, 100n);
      await world.clock.leap(10);
      await setLowBalance(world, 950n);
      await charge(world, 100n);
      await world.billing.listLines({ accountId });
      expect(await waitingIn(world)).toEqual([]);
    });

    test("a key's limit is told once a period, and one for ever once", async () => {
      const database = await open();
      await using world = await fundedWorld(database());
      await using other = await billingWorld(database());
      const { DAILY, WEEKLY, MONTHLY, NEVER } = KeyLimitReset;
      const told = new Set<string>();
      const refuseEach = async (limit = 1n) => {
        for (const keyLimitReset of [DAILY, WEEKLY, MONTHLY, NEVER]) {
          for (const one of [world, other, world]) {
            const limited = { keyMonthlyLimit: limit, keyLimitReset };
            await expect(hold(one, 2n, limited)).rejects.toThrow();
          }
        }
        // A few at a time, because the alerts of other accounts take turns with them.
        for (let some = await waitingIn(world); some.length > 0; some = await waitingIn(world)) {
          for (const { alertId } of some) {
            told.add(alertId);
            await world.billing.endAlert({ alertId });
          }
        }
        return told.size;
      };
      expect(await refuseEach()).toBe(4);
      expect(await refuseEach()).toBe(4);
      for (const one of [world, other]) await one.clock.leap(dayMs);
      expect(await refuseEach()).toBe(5);
      for (const one of [world, other]) await one.clock.leap(4 * dayMs);
      expect(await refuseEach()).toBe(7);
      for (const one of [world, other]) await one.clock.leap(13 * dayMs);
      // February, another week and another day.
      expect(await refuseEach()).toBe(10);
      // Another amount without a period is another limit.
      expect(await refuseEach(0n)).toBe(11);
    });
  });
}

type World = Awaited<ReturnType<typeof billingWorld>>;

async function fundedWorld(database: Database): Promise<World> {
  const world = await billingWorld(database);
  await world.operator.grant({ ...wallet, amount: 1_000n, operationId: "funds" });
  return world;
}

let holds = 0;

async function hold(world: World, amount: bigint, more: object = {}): Promise<string> {
  const holdId = `hold_${String(++holds).padStart(8, "0")}`;
  const checkTime = timestampFromMs(world.clock.now() + 1_000 * dayMs);
  const held = { holdId, amount, kind: HoldKind.TEXT, keyId: "key_a", ref: "r", checkTime };
  await world.billing.reserve({ ...wallet, ...held, ...more });
  return holdId;
}

async function charge(world: World, amount: bigint): Promise<void> {
  const holdId = await hold(world, amount);
  await world.billing.settle({ ...wallet, holdId, amount });
}

async function setLowBalance(world: World, lowBalanceUsdMicros: bigint): Promise<void> {
  const changes = {
    lowBalanceUsdMicros: Number(lowBalanceUsdMicros),
    webhookUrl: "https://example.com/hook",
  };
  const body = new TextEncoder().encode(JSON.stringify(changes));
  await world.billing.updateAlerts({ accountId, body });
}

async function waitingIn(world: World) {
  return (await world.billing.listWaitingAlerts({})).alerts;
}
