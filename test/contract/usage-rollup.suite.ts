import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import type { Database } from "#kit/store/database.ts";
import {
  type Line,
  type SearchLinesRequest,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { createLedgerStore, createUsageStore } from "../../services/billing/index.ts";
import { auditWallet } from "../../services/billing/ledger/audit.ts";
import type { Operation } from "../../services/billing/ledger/operations.ts";
import { beginUsageAudit } from "../../services/billing/usage/audit-usage.ts";
import { countEntries } from "../../services/billing/usage/count-entries.ts";
import { uncounted } from "../../services/billing/usage/usage.ts";
import { entriesBetween } from "../../services/billing/usage/usage-counting.ts";
import { billingWorld } from "./ledger.world.ts";
import {
  allLines,
  audit,
  checkAll,
  collect,
  fitsFilter,
  idOf,
  keysOf,
  keyUsage,
  sum,
  usage,
} from "./usage-rollup.checks.ts";
import {
  accountId,
  expectParts,
  fund,
  randomRequests,
  type Spent,
  seeded,
} from "./usage-rollup.world.ts";

type SearchFilter = Partial<Omit<SearchLinesRequest, "$typeName" | "$unknown">>;

/** Billing's rules for usage, on any store. `open` gives an empty one that can be opened again. */
export function usageRollupContract(open: () => Promise<() => Database>): void {
  describe("usage", () => {
    test("is what the journal says: by hour, day, key, model and kind, line by line", async () => {
      await using world = await billingWorld((await open())());
      const spent = await randomRequests(world, seeded(7), 50);
      const totals = await checkAll(world, spent);
      expect(totals.requests).toBe(spent.length);
    });

    test("is counted once by several processes that ask while others write", async () => {
      const database = await open();
      await using one = await billingWorld(database());
      await using two = await billingWorld(database());
      await using three = await billingWorld(database());
      const worlds = [one, two, three];
      await fund(one);
      const asking = new AbortController();
      const askers = worlds.map(async (world) => {
        while (!asking.signal.aborted) {
          // The test's clock jumps during the request, so the time for counting can be over.
          await usage(world, {}).catch((error) => expect(error.message).toContain("added up"));
        }
      });
      const lists = await Promise.all(
        worlds.map((world, i) => randomRequests(world, seeded(20 + i), 10, false)),
      );
      asking.abort();
      await Promise.all(askers);
      for (const world of worlds) await checkAll(world, lists.flat());
    });

    test("counts a database of an earlier release from its first entry on", async () => {
      const database = await open();
      const store = createLedgerStore(database());
      await store.open();
      const wallet = { accountId, unit: "usd_micros" } as const;
      const at = Date.UTC(2026, 0, 15);
      await store.apply(wallet, [{ kind: "grant", grantId: "g", amount: 1_000_000n }], at);
      for (let i = 0; i < 400; i++) {
        const holdId = `hold_${String(i).padStart(8, "0")}`;
        const hold = { holdId, holdKind: "text", keyId: "key_a", ref: holdId } as const;
        const operations: Operation[] = [
          { kind: "reserve", ...hold, amount: 9n, checkAt: at + 1 },
          { kind: "settle", holdId, amount: 3n },
        ];
        await store.apply(wallet, operations, at + i * 60_000);
      }
      await using next = await billingWorld(database());
      const buckets = await usage(next, { byKey: true, byModel: true, byKind: true });
      const results = buckets.flatMap((bucket) => bucket.results);
      expect(sum(results, "spentUsdMicros")).toBe(1_200n);
      expect(sum(results, "requests")).toBe(400n);
      expect(results.every((one) => one.kind === "text" && one.model === "")).toBe(true);
      const lines = await allLines(next, {});
      expect(lines).toHaveLength(401);
      expect(lines[0]?.balance).toBe(1_000_000n - 1_200n);
      expect(await audit(next)).toEqual([]);
    });

    test("takes what is given back from the hour of its charge, and names what it was for", async () => {
      await using world = await billingWorld((await open())());
      const spent = await randomRequests(world, seeded(11), 12);
      const charge = spent.find(
        ({ amount, kind, upstreamCost }) =>
          amount > 1n && kind === "text" && upstreamCost !== undefined,
      );
      if (!charge) throw new Error("nothing to give back");
      await world.clock.leap(2 * 86_400_000);
      const rowsNow = async () =>
        (await usage(world, { byModel: true })).flatMap(({ results, startSeconds }) =>
          results.map(({ model, requests, spentUsdMicros }) => ({
            ...{ startSeconds, model, requests, spentUsdMicros },
          })),
        );
      const costedNow = async () => {
        const asked = { accountId, startSeconds: BigInt(Date.UTC(2026, 0, 14) / 1_000), days: 92 };
        const { margins } = await world.operator.getMargins({ ...asked, byUpstream: true });
        return margins.map(({ upstream, costedUsdMicros }) => ({ upstream, costedUsdMicros }));
      };
      const before = await rowsNow();
      const costedBefore = await costedNow();
      const [keyBefore] = (await keyUsage(world)).filter(({ keyId }) => keyId === charge.keyId);
      const { line } = await world.billing.findLine({ accountId, id: charge.answerId });
      const refund = { accountId, unit: charge.unit, entryNumber: line?.number ?? 0n };
      for (let times = 0; times < 2; times++) {
        await world.operator.refund({ ...refund, amount: 1n, operationId: "oops" });
      }
      const [given] = await allLines(world, { kinds: ["refund"] });
      expect(given).toMatchObject({
        ...{ kind: "refund", refundedKind: "text", amount: 1n, keyId: charge.keyId },
        ...{ model: charge.model, id: charge.answerId },
      });
      const [keyAfter] = (await keyUsage(world)).filter(({ keyId }) => keyId === charge.keyId);
      expect(keyAfter?.spent).toBe((keyBefore?.spent ?? 0n) - 1n);
      // Its upstream earned less.
      expect(await costedNow()).toEqual(
        costedBefore.map((one) =>
          one.upstream === charge.upstream
            ? { ...one, costedUsdMicros: one.costedUsdMicros - 1n }
            : one,
        ),
      );
      const after = await rowsNow();
      const changed = after.filter((row, i) => row.spentUsdMicros !== before[i]?.spentUsdMicros);
      expect(changed).toHaveLength(1);
      expect(changed[0]?.model).toBe(charge.model);
      const restored = after.map((row) =>
        row === changed[0] ? { ...row, spentUsdMicros: row.spentUsdMicros + 1n } : row,
      );
      expect(restored).toEqual(before);
      const usd = spent.filter(({ unit }) => unit === Unit.USD_MICROS);
      const results = (await usage(world, {})).flatMap((bucket) => bucket.results);
      expect(sum(results, "spentUsdMicros")).toBe(
        usd.reduce((all, { amount }) => all + amount, 0n) - 1n,
      );
      expect((await allLines(world, {}))[0]?.balance).toBe(
        (await world.billing.getBalance({ accountId })).usdMicros?.available,
      );
      expect(await audit(world)).toEqual([]);
    });

    test("counts an entry once, in pieces of any size it is counted again", async () => {
      const database = (await open())();
      await using world = await billingWorld(database);
      const spent = await randomRequests(world, seeded(13), 30);
      const wallet = { accountId, unit: "usd_micros" } as const;
      const store = createLedgerStore(database);
      const again = createUsageStore(database);
      const entries = await entriesBetween(store, wallet, 0, 40);
      await usage(world, {});
      // Like a process that paused since the first entry, or died between two writes.
      for (const upTo of [1, 7, 19, 40]) {
        const some = entries.filter(({ n }) => n <= upTo);
        await again.count(wallet, uncounted, countEntries(wallet, uncounted, some, upTo));
      }
      await checkAll(world, spent);
    });

    test("is told by an audit as it was at the snapshot, with any entries behind it", async () => {
      const database = (await open())();
      await using world = await billingWorld(database);
      const before = await randomRequests(world, seeded(17), 30);
      const [store, rollup] = [createLedgerStore(database), createUsageStore(database)];
      const taken = await collect(store.snapshots(accountId));
      await randomRequests(world, seeded(18), 30, false);
      await usage(world, {});
      expect(taken).toHaveLength(2);
      for (const snapshot of taken) {
        const audited = await beginUsageAudit(snapshot, { usage: rollup, store });
        expect(await collect(auditWallet(audited.snapshot, { entries: 0 }))).toEqual([]);
        expect(await collect(audited.differences())).toEqual([]);
        const unit = snapshot.ref.unit === "credits" ? Unit.CREDITS : Unit.USD_MICROS;
        expect(audited.keys()).toEqual(keysOf(before.filter((one) => one.unit === unit)));
      }
    });

    test("gives pages in both directions, and the same with every filter", async () => {
      await using world = await billingWorld((await open())());
      await randomRequests(world, seeded(3), 80);
      const all = await allLines(world, {});
      for (const filter of [
        { keyId: "key_b" },
        { model: "chat-2" },
        { status: "failed" },
        { status: "completed", keyId: "key_a" },
        { kinds: ["image"] },
        { kinds: ["text", "speech"], model: "chat-1" },
        { kinds: ["grant"] },
        { onlyMoney: true },
        { keyId: "key_a", model: "chat-1", status: "failed" },
      ]) {
        const fits = all.filter((line) => fitsFilter(line, filter));
        expect((await allLines(world, filter)).map(idOf), JSON.stringify(filter)).toEqual(
          fits.map(idOf),
        );
      }
      const page = await world.billing.listLines({ accountId, pageSize: 10 });
      const older = await world.billing.listLines({
        ...{ accountId, pageSize: 10, after: page.nextPageToken },
      });
      const newer = await world.billing.listLines({
        ...{ accountId, pageSize: 10, before: older.lines[0]?.cursor ?? "" },
      });
      expect(newer.lines.map(idOf)).toEqual(page.lines.map(idOf));
      expect(newer.hasMore).toBe(false);
    });

    test("lists requests of all accounts for operators, by every filter, and finds one by its ids", async () => {
      await using world = await billingWorld((await open())());
      const spent: Spent[] = [];
      const accounts = [accountId, "acct_b", "acct_c"];
      for (const account of accounts) await fund(world, account);
      const random = seeded(40);
      for (let round = 0; round < 25; round++) {
        // Mostly at one time, and with the same numbers of entries.
        for (const account of accounts) {
          spent.push(...(await randomRequests(world, random, 1, false, account)));
        }
      }
      const found = async (filter: SearchFilter, pageSize = 7) => {
        const lines: Line[] = [];
        for (let pageToken = ""; ; ) {
          const page = await world.operator.searchLines({ ...filter, pageSize, pageToken });
          lines.push(...page.lines);
          if (page.nextPageToken === "") return lines;
          pageToken = page.nextPageToken;
        }
      };
      // A named account is counted at once, the others in the background.
      for (const account of accounts) {
        await world.operator.searchLines({ accountId: account });
      }
      const middle = spent[30]?.at ?? 0;
      for (const [filter, fits] of [
        [{}, () => true],
        [{ status: "failed" }, (one) => one.status === "failed"],
        [
          { status: "completed", model: "chat-1" },
          (one) => `${one.status} ${one.model}` === "completed chat-1",
        ],
        [{ kinds: ["image"] }, (one) => one.kind === "image"],
        [{ kinds: ["image", "text"] }, (one) => ["image", "text"].includes(one.kind)],
        [{ upstream: "secret-1" }, (one) => one.upstream === "secret-1"],
        [{ accountId: "acct_b" }, (one) => one.accountId === "acct_b"],
        [
          { accountId: "acct_b", keyId: "key_a" },
          (one) => `${one.accountId} ${one.keyId}` === "acct_b key_a",
        ],
        [{ fromTime: timestampFromMs(middle) }, (one) => one.at >= middle],
        [{ untilTime: timestampFromMs(middle) }, (one) => one.at < middle],
        [
          { status: "failed", fromTime: timestampFromMs(middle) },
          (one) => one.status === "failed" && one.at >= middle,
        ],
      ] as [SearchFilter, (one: Spent) => boolean][]) {
        const ids = (await found(filter)).map((line) => `${line.accountId} ${line.id}`);
        const expected = spent.filter(fits).map((one) => `${one.accountId} ${one.answerId}`);
        expect(ids.toSorted(), Object.keys(filter).join()).toEqual(expected.toSorted());
        expect(expected.length).toBeGreaterThan(0);
      }
      const all = await found({});
      const times = all.map(({ time }) => timestampMs(time ?? timestampFromMs(0)));
      expect(times).toEqual(times.toSorted((one, other) => other - one));
      const places = all.map(({ time, unit, number }) => `${time?.seconds} ${unit} ${number}`);
      expect(new Set(places).size).toBeLessThan(places.length);
      const [one] = spent;
      for (const id of [one?.answerId ?? "", one?.requestId ?? ""]) {
        const { lines } = await world.operator.searchLines({ id });
        expect(lines).toMatchObject([
          { id: one?.answerId, accountId, record: { upstream: one?.upstream } },
        ]);
      }
      expect((await world.operator.searchLines({ id: "req_none" })).lines).toEqual([]);
      for (const wrong of [{ pageToken: "1.u.1" }, { keyId: "key_a" }, { kinds: ["grant"] }]) {
        await expect(world.operator.searchLines(wrong)).rejects.toMatchObject({
          reason: ErrorReason.INVALID_ARGUMENT,
        });
      }
    });

    test("lines of a range of time are pages like all lines, whose end is excluded", async () => {
      await using world = await billingWorld((await open())());
      await randomRequests(world, seeded(3), 80);
      const all = await allLines(world, {});
      const times = all.map(({ time }) => timestampMs(time ?? expect.unreachable()));
      // Several lines may have the time of either end.
      const [from, until] = [times[60] ?? 0, times[20] ?? 0];
      const range = { fromTime: timestampFromMs(from), untilTime: timestampFromMs(until) };
      const inRange = all.filter((_, i) => (times[i] ?? 0) >= from && (times[i] ?? 0) < until);
      expect(inRange.length).toBeGreaterThan(20);
      expect(inRange.length).toBeLessThan(all.length);
      for (const filter of [{}, { keyId: "key_a" }, { kinds: ["image"] }, { status: "failed" }]) {
        const fits = inRange.filter((line) => fitsFilter(line, filter));
        const lines = await allLines(world, { ...filter, ...range });
        expect(lines.map(idOf), JSON.stringify(filter)).toEqual(fits.map(idOf));
      }
      const [newest, oldest] = [all[0]?.cursor ?? "", all.at(-1)?.cursor ?? ""];
      const page = (asked: object) =>
        world.billing.listLines({ accountId, pageSize: 5, ...range, ...asked });
      // A cursor outside of the range does not widen it.
      expect((await page({ after: newest })).lines.map(idOf)).toEqual(
        inRange.slice(0, 5).map(idOf),
      );
      expect((await page({ before: oldest })).lines.map(idOf)).toEqual(inRange.slice(-5).map(idOf));
      expect((await page({ after: oldest })).lines).toEqual([]);
      expect(await page({ before: newest })).toMatchObject({ lines: [], hasMore: false });
    });

    test("finds a request by its answer, its hold and its caller's request, for its key alone", async () => {
      await using world = await billingWorld((await open())());
      const [one] = await randomRequests(world, seeded(5), 1);
      if (!one) throw new Error("no request");
      for (const id of [one.answerId, one.requestId]) {
        const { line } = await world.billing.findLine({ accountId, keyId: one.keyId, id });
        expect(line?.id).toBe(one.answerId);
        await expectParts(world, line, one);
      }
      for (const asked of [
        { accountId, keyId: "key_other", id: one.answerId },
        { accountId: "acct_b", keyId: "", id: one.answerId },
        { accountId, keyId: "", id: "resp_none" },
      ]) {
        await expect(world.billing.findLine(asked)).rejects.toMatchObject({
          message: "There is no such request.",
        });
      }
    });
  });
}
