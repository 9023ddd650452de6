import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { expect } from "vitest";
import {
  EntryKind,
  type Line,
  type Margin,
  Unit,
  type UsageResult,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { accountId, type Spent, type World } from "./usage-rollup.world.ts";

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
  await checkMargins(world, spent);
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

/** Compares what requests were charged and cost, of the account and of all, with the charges. */
async function checkMargins(world: World, spent: readonly Spent[]): Promise<void> {
  const first = Math.floor(Date.UTC(2026, 0, 14) / 1_000);
  for (const by of [
    { byDay: true, byModel: true, byUpstream: true },
    { byModel: true, byUpstream: true },
    { byUpstream: true },
    {},
  ]) {
    const expected = new Map<string, Partial<Margin>>();
    for (const one of spent) {
      const day = Math.floor(one.at / 86_400_000) * 86_400;
      const name = JSON.stringify([
        "byDay" in by ? day : 0,
        "byModel" in by ? one.model : "",
        "byUpstream" in by ? one.upstream : "",
      ]);
      const isUsd = one.unit === Unit.USD_MICROS;
      const isCosted = isUsd && one.upstreamCost !== undefined;
      const before = expected.get(name);
      expected.set(name, {
        requests: (before?.requests ?? 0n) + 1n,
        spentUsdMicros: (before?.spentUsdMicros ?? 0n) + (isUsd ? one.amount : 0n),
        spentCredits: (before?.spentCredits ?? 0n) + (isUsd ? 0n : one.amount),
        costedRequests: (before?.costedRequests ?? 0n) + (isCosted ? 1n : 0n),
        costedUsdMicros: (before?.costedUsdMicros ?? 0n) + (isCosted ? one.amount : 0n),
        upstreamCostUsdMicros:
          (before?.upstreamCostUsdMicros ?? 0n) + (isCosted ? (one.upstreamCost ?? 0n) : 0n),
      });
    }
    for (const asked of [accountId, ""]) {
      const { margins, nextStartSeconds } = await world.operator.getMargins({
        ...{ accountId: asked, startSeconds: BigInt(first), days: 92, ...by },
      });
      const told = margins.map(({ startSeconds, model, upstream, ...margin }) => {
        const { $typeName: _, ...figures } = margin;
        return [JSON.stringify([Number(startSeconds), model, upstream]), figures] as const;
      });
      expect(new Map(told), JSON.stringify(by)).toEqual(expected);
      expect(nextStartSeconds).toBe(0n);
    }
  }
}

const nothing = () => ({ usd: 0n, credits: 0n, requests: 0n, cacheWrites: 0n, toolCalls: 0n });

/** An audit's expected figures of keys. Each is there twice, by the entries and by the rollup. */
export function keysOf(spent: readonly Spent[]) {
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
export async function keyUsage(world: World) {
  const keyIds = ["key_a", "key_b", "key_c"];
  return (await world.billing.getKeyUsage({ accountId, keyIds })).keys;
}

/** Usage from the worlds' first day on, by default for 30 days or a week of hours. */
export async function usage(
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
  fromTime?: Timestamp;
  untilTime?: Timestamp;
}

export async function allLines(world: World, filter: Filter): Promise<Line[]> {
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

export function fitsFilter(line: Line, filter: Filter): boolean {
  const { keyId, model, status, kinds: only, onlyMoney } = filter;
  return (
    (keyId === undefined || line.keyId === keyId) &&
    (model === undefined || line.model === model) &&
    (status === undefined || line.record?.status === status) &&
    (only === undefined || only.includes(line.kind)) &&
    (!onlyMoney || line.amount !== 0n)
  );
}

export const idOf = ({ cursor }: Line) => cursor;

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

export function sum(
  results: readonly UsageResult[],
  name: "spentUsdMicros" | "requests" | "inputTokens",
) {
  return results.reduce((all, one) => all + one[name], 0n);
}

export async function collect<T>(source: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const one of source) all.push(one);
  return all;
}
