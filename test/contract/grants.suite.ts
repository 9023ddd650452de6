import { beforeEach, describe, expect, test } from "vitest";
import { randomIds } from "#kit/base/ids.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import type { Database } from "#kit/store/database.ts";
import { manualClock } from "#kit/time/clock.ts";
import { EntryKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createBillingEvents } from "../../services/billing/base/events.ts";
import { grantLookMs } from "../../services/billing/base/limits.ts";
import type { GrantStore } from "../../services/billing/grants/grant-store.ts";
import { giveDue } from "../../services/billing/grants/monthly.ts";
import { createGrantStore } from "../../services/billing/grants/store-documents.ts";
import { createLedgerStore } from "../../services/billing/index.ts";
import type { Outcome } from "../../services/billing/ledger/operations.ts";
import { until } from "../support/until.ts";
import { billingWorld } from "./ledger.world.ts";

const accountId = "acct_a";
/** The clocks of the tests begin in the middle of January. */
const [january, february, march, june] = [0, 1, 2, 5].map((month) => Date.UTC(2026, month)) as [
  ...[number, number, number, number],
];

/** Billing's rules for monthly grants, on any store. `open` gives an empty database that can be opened again. */
export function monthlyGrantContract(open: () => Promise<() => Database>): void {
  describe("monthly grants that are kept", () => {
    let store: GrantStore;
    let second: GrantStore;
    beforeEach(async () => {
      const database = await open();
      store = createGrantStore(database());
      second = createGrantStore(database());
      await store.open();
      await second.open();
    });

    test("a new one is due in the next month, a change of it keeps its time, and none is none", async () => {
      const usdMicros = 8_999_999_999_999_999n;
      const first = { accountId, usdMicros, credits: 0n, dueAt: february };
      expect(await store.change(accountId, { usdMicros }, january + 5)).toEqual(first);
      expect(await second.find(accountId)).toEqual(first);
      const both = { ...first, credits: 7n };
      expect(await second.change(accountId, { credits: 7n }, march)).toEqual(both);
      expect(await store.change(accountId, {}, march)).toEqual(both);
      const credits = { ...both, usdMicros: 0n };
      expect(await store.change(accountId, { usdMicros: 0n }, march)).toEqual(credits);
      expect(await store.change(accountId, { credits: 0n }, march)).toBeUndefined();
      expect(await second.find(accountId)).toBeUndefined();
      expect(await store.change(accountId, { credits: 0n }, march)).toBeUndefined();
      expect(await second.find(accountId)).toBeUndefined();
      const last = Date.UTC(2026, 11, 31, 23, 59, 59, 999);
      expect((await store.change(accountId, { credits: 1n }, last))?.dueAt).toBe(Date.UTC(2027, 0));
      await second.erase(accountId);
      expect(await store.find(accountId)).toBeUndefined();
    });

    test("those that are due come in their order, page by page, and move on", async () => {
      for (const [id, at] of [
        ["c", january],
        ["a", january],
        ["b", january],
        ["d", march],
      ] as const) {
        await store.change(`acct_${id}`, { credits: 1n }, at);
      }
      const due = async (now: number, after?: Awaited<ReturnType<GrantStore["find"]>>, limit = 2) =>
        second.due({ now, after, limit });
      const ids = (found: readonly { accountId: string }[]) => found.map((one) => one.accountId);
      expect(await due(february - 1)).toEqual([]);
      const page = await due(february);
      expect(ids(page)).toEqual(["acct_a", "acct_b"]);
      expect(ids(await due(february, page[1]))).toEqual(["acct_c"]);
      await store.moveOn("acct_b", march);
      await second.moveOn("acct_b", february);
      expect((await store.find("acct_b"))?.dueAt).toBe(march);
      expect(ids(await due(february, undefined, 9))).toEqual(["acct_a", "acct_c"]);
      await store.moveOn("acct_none", march);
      expect(await store.find("acct_none")).toBeUndefined();
    });
  });

  describe("monthly grants that are given", () => {
    test("two processes give each month's once, and none of a month that is over", async () => {
      const database = await open();
      await using one = await billingWorld(database());
      await using two = await billingWorld(database());
      const grants = async () => {
        const { entries } = await one.operator.listEntries({ accountId });
        return entries.map(({ kind, unit, freeDelta }) => [kind, unit, freeDelta].join(" ")).sort();
      };
      const granted = (unit: number, amount: number) => `${EntryKind.GRANT} ${unit} ${amount}`;
      await one.operator.setMonthlyGrant({ accountId, usdMicros: 500n, credits: 3n });
      const next = async () => {
        const { monthlyGrant } = await two.operator.getMonthlyGrant({ accountId });
        return Number(monthlyGrant?.nextTime?.seconds ?? 0n) * 1_000;
      };
      const move = async (to: number) => {
        const clocks = [one, two].map(({ clock }) => clock.leap(to - clock.now()));
        await Promise.all(clocks);
      };
      await move(february - 1);
      expect([await grants(), await next()]).toEqual([[], february]);
      await move(february + grantLookMs);
      await until("February's", async () => (await next()) === march);
      const ofFebruary = [granted(1, 500), granted(2, 3)];
      expect(await grants()).toEqual(ofFebruary);
      // Four months later: a change of the amount counts for what comes.
      await two.operator.setMonthlyGrant({ accountId, usdMicros: 600n });
      await move(june + grantLookMs);
      await until("June's", async () => (await next()) === Date.UTC(2026, 6));
      expect(await grants()).toEqual([...ofFebruary, granted(1, 600), granted(2, 3)].sort());
      const { usdMicros } = await one.billing.getBalance({ accountId });
      expect(usdMicros).toMatchObject({ available: 1_100n, granted: 1_100n });
      await one.operator.setMonthlyGrant({ accountId, usdMicros: 0n, credits: 0n });
      expect((await two.operator.getMonthlyGrant({ accountId })).monthlyGrant).toBeUndefined();
    });

    test("a process that ends after any of its steps leaves one grant, also where its amount changes", async () => {
      const database = (await open())();
      const clock = manualClock(january);
      const [ids, metrics] = [randomIds, createMetrics()];
      const events = createBillingEvents({ log: createLogger("silent"), metrics, ids, clock });
      const ledger = createLedgerStore(database);
      const grants = createGrantStore(database);
      await ledger.open();
      await grants.open();
      await grants.change(accountId, { usdMicros: 500n, credits: 3n }, clock.now());
      await clock.leap(february - january);
      /** The stores of a process that is gone right after its n-th change. */
      const dying = (n: number) => {
        let changes = 0;
        const wrap =
          <A extends unknown[], R>(method: (...args: A) => Promise<R>) =>
          async (...args: A): Promise<R> => {
            if (changes >= n) throw new Error("it is gone");
            const answer = await method(...args);
            changes += 1;
            if (changes === n) throw new Error("it is gone");
            return answer;
          };
        return {
          ...{ clock, events },
          told: (_wallet: unknown, _operations: unknown, outcomes: Outcome[]) => outcomes,
          store: { ...ledger, apply: wrap(ledger.apply) },
          grants: { ...grants, moveOn: wrap(grants.moveOn) },
        };
      };
      const signal = new AbortController().signal;
      for (let n = 1; n <= 3; n++) {
        await giveDue(dying(n), signal);
        // The operator changes the amount while no process could complete the month.
        if (n === 1) await grants.change(accountId, { usdMicros: 900n }, clock.now());
      }
      await giveDue(dying(Number.POSITIVE_INFINITY), signal);
      expect((await grants.find(accountId))?.dueAt).toBe(march);
      for (const [unit, amount] of [
        ["usd_micros", 500n],
        ["credits", 3n],
      ] as const) {
        const entries = await ledger.entries({ accountId, unit }, { below: 99, limit: 9 });
        expect(entries.map(({ kind, freeDelta }) => [kind, freeDelta])).toEqual([
          ["grant", amount],
        ]);
      }
    });

    test("an account that is being closed gets none, and one that cannot be given stops no other", async () => {
      await using world = await billingWorld((await open())());
      const { operator, clock } = world;
      const most = 9_000_000_000_000_000n;
      for (const id of ["acct_a", "acct_b", "acct_c"]) {
        await operator.setMonthlyGrant({ accountId: id, credits: id === "acct_a" ? most : 5n });
      }
      // A wallet with a thousand of the largest grants takes no further one.
      for (let n = 0; n < 1_000; n++) {
        const grant = {
          accountId: "acct_a",
          unit: Unit.CREDITS,
          amount: most,
          operationId: `g${n}`,
        };
        await operator.grant(grant);
      }
      await world.billing.eraseAlerts({ accountId: "acct_c" });
      await clock.leap(february + grantLookMs - clock.now());
      const credits = async (id: string) =>
        (await world.billing.getBalance({ accountId: id })).credits?.granted;
      await until("the other's", async () => (await credits("acct_b")) === 5n);
      await until("the refusal's line", async () =>
        world.lines.some((line) => line.includes("monthly grant could not")),
      );
      expect([await credits("acct_a"), await credits("acct_c")]).toEqual([most * 1_000n, 0n]);
      const { monthlyGrant } = await operator.getMonthlyGrant({ accountId: "acct_a" });
      expect(Number(monthlyGrant?.nextTime?.seconds) * 1_000).toBe(february);
    });
  });
}
