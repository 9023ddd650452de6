import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import { EntryKind, HoldKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { journal } from "../../test/contract/leases.world.ts";
import { intentOf } from "../../test/contract/usage.suite.ts";
import {
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, principal, type TextWorld } from "../../test/contract/usage.world.ts";
import { createSqliteUsageStore } from "./store/store-sqlite.ts";

const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };
const key = { key: "one" };
const start = manualClock().now();

let folder: string;
let upstreams: ScriptedUpstreams;
let current: Feed;
let first: TextWorld;
const worlds: TextWorld[] = [];

async function open(atMs: number, isNew = false): Promise<TextWorld> {
  const file = join(folder, "genmesh.db");
  const world = await createTextWorld({ upstreams, file, isNew, clock: manualClock(atMs) });
  worlds.push(world);
  return world;
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-text-"));
  upstreams = scriptedUpstreams(async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  first = await open(start, true);
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** A stream of which `words` were sent and recorded by a checkpoint. */
async function streamed(words: number, asked: object = {}) {
  const stream = first.stream("RESPONSES", { ...asStream, ...asked }, key);
  await stream.next();
  current.push(events.delta("word ".repeat(words)));
  await stream.next();
  await first.clock.advance(2_600);
  const store = createSqliteUsageStore(openSqlite(join(folder, "genmesh.db")));
  await vi.waitFor(async () => {
    const due = await store.due(Number.MAX_SAFE_INTEGER, 10);
    expect(due[0]?.outputTokens).toBeGreaterThan(0);
    // The first count of a process starts its thread.
  }, 40_000);
  return { stream, store };
}

/** Advances the clock until the wallet has no holds. */
async function settledIn(world: TextWorld): Promise<bigint> {
  await vi.waitFor(async () => {
    await world.clock.advance(5_000);
    expect((await world.wallet()).reserved).toBe(0n);
  }, 40_000);
  return (await world.wallet()).spent;
}

/** Leaves a request like an earlier version did: in review, with its hold, for the operator to end. */
async function leaveInReview(holdId: string): Promise<void> {
  const db = openSqlite(join(folder, "genmesh.db"));
  const store = createSqliteUsageStore(db);
  const times = { openedAt: start, holdCheckAt: start + 60_000 };
  await store.open(intentOf(1, { ...principal, holdAmount: 5_000n, ...times }));
  await first.peers.billing.reserve({
    ...principal,
    unit: Unit.USD_MICROS,
    holdId,
    amount: 5_000n,
    kind: HoldKind.TEXT,
    ref: holdId,
    checkTime: timestampFromMs(start + 60_000),
  });
  const sql = `UPDATE text_usage SET status = 'review', reported = '{"inputTokens":-1}', closed_at = ?, due_at = ?
    WHERE request_id = ?`;
  await db.write((tx) => tx.run(sql, start, start + 600_000, holdId));
}

test("what an older release left in review stands until the operator ends it", async () => {
  const holdId = "text_00000001";
  await leaveInReview(holdId);
  const { reviews } = await first.admin.text.listReviews({});
  expect(reviews).toMatchObject([{ holdId, reportedUsage: '{"inputTokens":-1}' }]);
  expect(reviews[0]?.chargedUsdMicros).toBeUndefined();
  await first.clock.advance(120_000);
  const { verdict } = await first.peers.text.resolveHold({ ...principal, holdId });
  expect(verdict?.verdict.case).toBe("keepUntil");
  expect(await first.wallet()).toMatchObject({ reserved: 5_000n });
  await first.admin.billing.endHold({ ...principal, unit: 1, holdId, settleAmount: 42n });
  await first.clock.advance(700_000);
  await vi.waitFor(async () => {
    await first.clock.advance(1_000);
    expect((await first.admin.text.listReviews({})).reviews).toEqual([]);
  }, 40_000);
  expect(await first.wallet()).toMatchObject({ reserved: 0n, spent: 42n });
});

describe("a process that died", () => {
  test("its request is charged as of its last checkpoint, once its lease is over", async () => {
    await streamed(40);
    current.push(events.delta("never written down ".repeat(20)));
    first.die();
    const second = await open(start + 20_000);
    await second.clock.advance(5_000);
    expect((await second.wallet()).reserved).toBeGreaterThan(0n);
    await second.clock.advance(15_000);
    const spent = await settledIn(second);
    // Forty tokens of output at ten, and the input at one.
    expect(spent).toBeGreaterThan(400n);
    expect(spent).toBeLessThan(470n);
    expect(await second.metrics.text()).toMatch(/end="lost"\} 1/);
  });
  test("its record is found by the answer's id and by the caller's request, as a stream", async () => {
    const { store } = await streamed(40);
    const told = (await store.due(Number.MAX_SAFE_INTEGER, 1))[0]?.told;
    first.die();
    const second = await open(start + 20_000);
    await second.clock.advance(20_000);
    await settledIn(second);
    const { record } = (await journal(second)).at(-1) ?? {};
    expect(told?.callId).toMatch(/./);
    expect(told?.answerId).toMatch(/^resp_/);
    expect(record).toMatchObject({
      ...{ status: "lost", streamed: true, upstream: "up", requestId: told?.callId },
      answerId: told?.answerId,
    });
    expect(record?.firstOutputTime).toBeDefined();
  });
  test("what hosted tools may have added stands in its checkpoint", async () => {
    await streamed(40, { tools: [{ type: "web_search" }] });
    first.die();
    const second = await open(start + 20_000);
    await second.clock.advance(20_000);
    // No item showed a call, so the whole input of the hold is charged, at one micro a token.
    expect(await settledIn(second)).toBeGreaterThanOrEqual(10_400n);
  });
  test("its key is free after that: the same request is sent anew, and waits until then", async () => {
    await streamed(40);
    first.die();
    upstreams.script = async () => jsonAnswer({ id: "resp_again" });
    const second = await open(start + 25_000);
    const again = second.ask("RESPONSES", ask, key);
    const isDone = vi.fn();
    again.then(isDone, isDone);
    await second.clock.advance(2_000);
    expect(isDone).not.toHaveBeenCalled();
    await vi.waitFor(async () => {
      await second.clock.advance(1_000);
      expect(isDone).toHaveBeenCalled();
    }, 40_000);
    expect(await again).toMatchObject({ replayed: false, json: { id: "resp_again" } });
  });
  test.each<[name: string, key: { key: string } | undefined]>([
    ["without a key costs nothing, and its hold is closed when its lease is over", undefined],
    ["with a key costs nothing either: nothing tells whether it was sent", key],
  ])("one that had no checkpoint yet, %s", async (_name, keyed) => {
    const stream = first.stream("RESPONSES", asStream, keyed);
    await stream.next();
    current.push(events.delta("word ".repeat(40)));
    await stream.next();
    first.die();
    const second = await open(start + 31_000);
    const spent = await settledIn(second);
    expect(spent).toBe(0n);
    const { entries } = await second.admin.billing.listEntries({ accountId: principal.accountId });
    const kinds = entries.map(({ kind }) => kind);
    const { GRANT, HOLD, RELEASE, DRAW } = EntryKind;
    expect(kinds).toEqual(keyed ? [DRAW, HOLD, GRANT] : [RELEASE, HOLD, GRANT]);
  });
  test("one that waited for its place at the upstream costs nothing: it was not sent", async () => {
    const waits = Promise.withResolvers<void>();
    upstreams.send = ({ signal }) => {
      waits.resolve();
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    };
    first.ask("RESPONSES", ask).catch(() => {});
    await waits.promise;
    const store = createSqliteUsageStore(openSqlite(join(folder, "genmesh.db")));
    await vi.waitFor(async () => {
      await first.clock.advance(1_000);
      expect(await store.due(Number.MAX_SAFE_INTEGER, 1)).toHaveLength(1);
    }, 40_000);
    first.die();
    const second = await open(first.clock.now() + 31_000);
    expect(await settledIn(second)).toBe(0n);
  });
  test("one that an older release wrote down and did not send costs nothing", async () => {
    const db = openSqlite(join(folder, "genmesh.db"));
    const store = createSqliteUsageStore(db);
    const holdId = "text_00000001";
    const hold = { holdAmount: 5_000n, openedAt: start, leaseUntil: start + 30_000 };
    await store.open(intentOf(1, { ...hold, ...principal }));
    await db.write((tx) => tx.run("UPDATE text_usage SET dispatched = 0"));
    await first.peers.billing.reserve({
      ...principal,
      unit: Unit.USD_MICROS,
      holdId,
      amount: 5_000n,
      kind: HoldKind.TEXT,
      ref: holdId,
      checkTime: timestampFromMs(start + 60_000),
    });
    expect(await first.wallet()).toMatchObject({ reserved: 5_000n });
    await first.clock.advance(31_500);
    await vi.waitFor(async () => expect(await store.find(holdId)).toBeUndefined(), 40_000);
    expect(await first.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
  });
  test("closed but not settled: settled by another, for the same amount", async () => {
    const { store } = await streamed(40);
    const requestId = (await store.due(Number.MAX_SAFE_INTEGER, 1))[0]?.requestId ?? "";
    const charge = { amount: 77n, input: 1, cachedInput: 0, output: 1, estimated: false };
    const owner = (await store.find(requestId))?.owner ?? "";
    const now = first.clock.now();
    const closing = { kind: "settling", end: "completed", charge } as const;
    await store.close(requestId, { owner }, closing, { now, dueAt: now + 5_000 });
    first.die();
    expect(await settledIn(await open(now + 6_000))).toBe(77n);
  });
});

describe("a process that lost its request", () => {
  test("ends the stream with response.failed, closes upstream, and charges nothing itself", async () => {
    const { stream, store } = await streamed(40);
    const requestId = (await store.due(Number.MAX_SAFE_INTEGER, 1))[0]?.requestId ?? "";
    const charge = { amount: 5n, input: 1, cachedInput: 0, output: 1, estimated: true };
    const now = start + 60_000;
    const closing = { kind: "settling", end: "lost", charge } as const;
    const taken = { leaseOverAt: now };
    expect(await store.close(requestId, taken, closing, { now, dueAt: now + 5_000 })).toBe(true);
    const rest = stream.rest();
    await first.clock.advance(2_600);
    await vi.waitFor(() => expect(current.isAborted).toBe(true), 40_000);
    const text = await rest;
    expect(text).toContain("event: response.failed");
    expect(text).toContain("service_unavailable");
    expect(await first.wallet()).toMatchObject({ spent: 0n });
    await first.clock.advance(60_000);
    expect(await settledIn(first)).toBe(5n);
  });
  test("also where it notices only at the end", async () => {
    const { stream, store } = await streamed(40);
    const requestId = (await store.due(Number.MAX_SAFE_INTEGER, 1))[0]?.requestId ?? "";
    const charge = { amount: 5n, input: 1, cachedInput: 0, output: 1, estimated: true };
    const now = start + 60_000;
    const closing = { kind: "settling", end: "lost", charge } as const;
    await store.close(requestId, { leaseOverAt: now }, closing, { now, dueAt: now + 5_000 });
    current.push(events.end());
    const text = await stream.rest();
    expect(text).not.toContain("response.completed");
    expect(text).toContain("response.failed");
  });
});

describe("what billing is told", () => {
  const verdictOn = async (world: TextWorld, holdId: string, accountId = principal.accountId) =>
    (await world.peers.text.resolveHold({ holdId, accountId })).verdict?.verdict;
  const holdOf = async () => {
    const { holds } = await first.admin.billing.listHolds({});
    return holds[0]?.holdId ?? "";
  };

  test("of a hold that no row knows: release", async () => {
    expect(await verdictOn(first, "text_unknown")).toEqual({ case: "release", value: true });
  });
  test("of a running request: keep, however long it runs; another account's: release", async () => {
    const stream = first.stream("RESPONSES", asStream);
    await stream.next();
    for (let minute = 0; minute < 3; minute++) await first.clock.advance(60_000);
    expect((await verdictOn(first, await holdOf()))?.case).toBe("keepUntil");
    expect((await verdictOn(first, await holdOf(), "acct_other"))?.case).toBe("release");
    expect((await first.wallet()).reserved).toBeGreaterThan(0n);
    current.push(events.end());
    await stream.rest();
    expect(await first.wallet()).toMatchObject({ reserved: 0n, spent: 311n });
  });
  test("of a dead process's request: release, after its checkpoint was drawn", async () => {
    const { store } = await streamed(40);
    const holdId = await holdOf();
    first.die();
    const second = await open(start + 20_000);
    expect((await verdictOn(second, holdId))?.case).toBe("keepUntil");
    expect(await store.find(holdId)).toMatchObject({ status: "open" });
    const third = await open(start + 60_000);
    const verdict = await verdictOn(third, holdId);
    expect(verdict).toEqual({ case: "release", value: true });
    expect(await store.find(holdId)).toBeUndefined();
    const { reserved, spent } = await third.wallet();
    expect(reserved).toBe(0n);
    expect(spent).toBeGreaterThan(400n);
  });
});
