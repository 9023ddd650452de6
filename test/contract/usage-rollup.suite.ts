import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import type { Database } from "#kit/store/database.ts";
import {
  EntryKind,
  type Line,
  Unit,
  type UsageResult,
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
  accountId,
  expectParts,
  fund,
  randomRequests,
  type Spent,
  seeded,
  type World,
} from "./usage-rollup.world.ts";

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
      const charge = spent.find(({ amount, kind }) => amount > 1n && kind === "text");
      if (!charge) throw new Error("nothing to give back");
      await world.clock.leap(2 * 86_400_000);
      const rowsNow = async () =>
        (await usage(world, { byModel: true })).flatMap(({ results, startSeconds }) =>
          results.map(({ model, requests, spentUsdMicros }) => ({
            ...{ startSeconds, model, requests, spentUsdMicros },
          })),
        );
      const before = await rowsNow();
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

/** Compares every view with the charges, and the audit too. */
export async function checkAll(world: World, spent: readonly Spent[]) {
  for (const by of [
    { byKey: true, byModel: true, byKind: true },
    { byKey: true },
    { byModel: true },
    { byKind: true },
    {},
  ]) {
    for (const widthSeconds of [3_600, 86_400]) {
      const expected = new Map<string, ReturnType<typeof nothing>>();
      for (const one of spent) {
        const start = Math.floor(one.at / 1_000 / widthSeconds) * widthSeconds;
        const name = JSON.stringify([
          start,
          "byKey" in by ? one.keyId : "",
          "byModel" in by ? one.model : "",
          "byKind" in by ? one.kind : "",
        ]);
        const sums = expected.get(name) ?? nothing();
        if (one.unit === Unit.USD_MICROS) sums.usd += one.amount;
        else sums.credits += one.amount;
        sums.requests++;
        sums.cacheWrites += one.cacheWrites;
        sums.toolCalls += one.toolCalls;
        expected.set(name, sums);
      }
      const told = new Map(
        (await usage(world, { ...by, widthSeconds })).flatMap(({ startSeconds, results }) =>
          results.map((one) => [
            JSON.stringify([Number(startSeconds), one.keyId, one.model, one.kind]),
            {
              ...{ usd: one.spentUsdMicros, credits: one.spentCredits, requests: one.requests },
              ...{ cacheWrites: one.inputCacheWriteTokens, toolCalls: one.toolCalls },
            },
          ]),
        ),
      );
      expect(told).toEqual(expected);
    }
  }
  for (const { keyId, spent: told } of await keyUsage(world)) {
    const own = spent.filter((one) => one.unit === Unit.USD_MICROS && one.keyId === keyId);
    expect(told, keyId).toBe(own.reduce((all, { amount }) => all + amount, 0n));
  }
  const requests = await allLines(world, {
    kinds: ["text", "speech", "image", "video", "music", "job"],
  });
  expect(requests.map(({ id, amount }) => [id, amount]).sort(byText)).toEqual(
    spent.map(({ answerId, amount }) => [answerId, -amount]).sort(byText),
  );
  const tokens = sum(
    (await usage(world, {})).flatMap(({ results }) => results),
    "inputTokens",
  );
  expect(tokens).toBe(spent.reduce((all, one) => all + one.inputTokens, 0n));
  const lines = await allLines(world, {});
  const balance = await world.billing.getBalance({ accountId });
  for (const wallet of [balance.usdMicros, balance.credits]) {
    // Clocks of several processes differ here by more than the ledger tolerates. So entries are ordered by their numbers.
    const own = lines
      .filter(({ unit }) => unit === wallet?.unit)
      .sort((a, b) => Number(b.number - a.number));
    expect(own.at(0)?.balance).toBe(wallet?.available);
    expect(own.reduce((all, { amount }) => all + amount, 0n)).toBe(wallet?.available);
    const entries = await world.operator.listEntries({ accountId, pageSize: 1_000 });
    const ends = entries.entries
      .filter((entry) => entry.unit === wallet?.unit && entry.kind !== EntryKind.HOLD)
      .sort((a, b) => Number(b.number - a.number));
    expect(own.map(({ number }) => number)).toEqual(ends.map(({ number }) => number));
  }
  expect(await audit(world)).toEqual([]);
  const audited = await auditedWallets(world);
  expect(audited).toHaveLength(2);
  for (const { wallet, keys } of audited) {
    expect(wallet).toEqual(wallet?.unit === Unit.CREDITS ? balance.credits : balance.usdMicros);
    const own = spent.filter(({ unit }) => unit === wallet?.unit);
    expect(keys).toMatchObject(keysOf(own));
    expect(keys).toHaveLength(keysOf(own).length);
  }
  return { requests: requests.length };
}

const nothing = () => ({ usd: 0n, credits: 0n, requests: 0n, cacheWrites: 0n, toolCalls: 0n });

/** An audit's expected figures of keys. Each is there twice, by the entries and by the rollup. */
function keysOf(spent: readonly Spent[]) {
  const own = [...Map.groupBy(spent, ({ keyId }) => keyId)];
  return own
    .map(([keyId, list]) => {
      const requests = BigInt(list.length);
      const charged = list.reduce((all, { amount }) => all + amount, 0n);
      const byEntries = { keyId, requests, spent: charged };
      return { ...byEntries, rollupRequests: requests, rollupSpent: charged };
    })
    .sort((a, b) => (a.keyId < b.keyId ? -1 : 1));
}

const byText = (a: readonly unknown[], b: readonly unknown[]) => (`${a[0]}` < `${b[0]}` ? -1 : 1);

/** Usage of every key in these worlds. */
async function keyUsage(world: World) {
  const keyIds = ["key_a", "key_b", "key_c"];
  return (await world.billing.getKeyUsage({ accountId, keyIds })).keys;
}

/** Usage from the worlds' first day on, by default for 30 days or a week of hours. */
async function usage(
  world: World,
  asked: { byKey?: boolean; byModel?: boolean; byKind?: boolean; widthSeconds?: number },
) {
  const { widthSeconds = 86_400 } = asked;
  const first = Math.floor(Date.UTC(2026, 0, 14) / 1_000);
  const until = Math.floor(world.clock.now() / 1_000) + 86_400;
  const buckets = [];
  for (let start = first; start < until; start += 30 * widthSeconds) {
    const answer = await world.billing.getUsage({
      ...{ accountId, ...asked, widthSeconds, startSeconds: BigInt(start), buckets: 30 },
    });
    buckets.push(...answer.buckets);
  }
  return buckets;
}

interface Filter {
  keyId?: string;
  model?: string;
  status?: string;
  kinds?: string[];
  onlyMoney?: boolean;
}

async function allLines(world: World, filter: Filter): Promise<Line[]> {
  const lines: Line[] = [];
  let after = "";
  do {
    const page = await world.billing.listLines({ accountId, ...filter, pageSize: 17, after });
    lines.push(...page.lines);
    expect(page.hasMore).toBe(page.nextPageToken !== "");
    after = page.nextPageToken;
  } while (after !== "");
  const times = lines.map(({ time }) => (time ? timestampMs(time) : 0));
  expect(times).toEqual([...times].sort((a, b) => b - a));
  return lines;
}

function fitsFilter(line: Line, filter: Filter): boolean {
  const { keyId, model, status, kinds: only, onlyMoney } = filter;
  return (
    (keyId === undefined || line.keyId === keyId) &&
    (model === undefined || line.model === model) &&
    (status === undefined || line.record?.status === status) &&
    (only === undefined || only.includes(line.kind)) &&
    (!onlyMoney || line.amount !== 0n)
  );
}

const idOf = ({ cursor }: Line) => cursor;

/** The differences that an audit of the account finds. */
export async function audit(world: World) {
  const differences = [];
  for await (const { finding } of world.operator.auditLedger({ accountId })) {
    if (finding.case === "difference") differences.push(finding.value);
  }
  return differences;
}

/** An audit's figures of wallets. */
async function auditedWallets(world: World) {
  const wallets = [];
  for await (const { finding } of world.operator.auditLedger({ accountId, totals: true })) {
    if (finding.case === "totals") wallets.push(finding.value);
  }
  return wallets;
}

function sum(results: readonly UsageResult[], name: "spentUsdMicros" | "requests" | "inputTokens") {
  return results.reduce((all, one) => all + one[name], 0n);
}

async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}
