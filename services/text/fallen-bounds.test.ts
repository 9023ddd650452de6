import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import {
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, snapshotWith, type TextWorld } from "../../test/contract/usage.world.ts";
import { createSqliteUsageStore } from "./store/store-sqlite.ts";

/** At 10 micros a token: 40,000 micros for the model's maximum, 10,240 for the least bound, and some for the input. */
const snapshot = snapshotWith({ maxInputTokens: 20_000n, maxOutputTokens: 4_000n });
const principal = { accountId: "acct_poor", keyId: "key_poor" };
const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };
const start = manualClock().now();
const funds = 15_000n;
/** The output that the funds pay for beside the input. */
const fallen = { least: 1_350, most: 1_500 };

let folder: string;
let upstreams: ScriptedUpstreams;
let current: Feed;
let between: Interceptor;
const worlds: TextWorld[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-text-"));
  between = (next) => next;
  upstreams = scriptedUpstreams(async () => jsonAnswer());
});
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

async function open(atMs = start): Promise<TextWorld> {
  const isNew = worlds.length === 0;
  const options = { upstreams, snapshot, file: join(folder, "genmesh.db"), isNew };
  const world = await createTextWorld({
    ...options,
    clock: manualClock(atMs),
    between: (next) => (request) => between(next)(request),
  });
  worlds.push(world);
  if (isNew) await grant(world, funds, "first");
  return world;
}

async function grant(world: TextWorld, amount: bigint, operationId: string): Promise<void> {
  const { accountId } = principal;
  await world.admin.billing.grant({ accountId, unit: Unit.USD_MICROS, amount, operationId });
}

async function walletOf({ peers }: TextWorld) {
  const { usdMicros } = await peers.billing.getBalance(principal);
  const { reserved = 0n, spent = 0n, spendable = 0n } = usdMicros ?? {};
  return { reserved, spent, spendable };
}

async function records() {
  using db = openSqlite(join(folder, "genmesh.db"));
  return await createSqliteUsageStore(db).due(Number.MAX_SAFE_INTEGER, 10);
}

const toldOf = () => {
  return Number(upstreams.sent.at(-1)?.maxOutputTokens);
};

test("a reply that was lost is asked for again: what was held then is the bound, also where more came in", async () => {
  const world = await open();
  let isLost = false;
  between = (next) => async (request) => {
    const reply = await next(request);
    if (isLost || request.method.name !== "Apply") return reply;
    isLost = true;
    await grant(world, 1_000_000n, "second");
    throw new ConnectError("the reply was lost", Code.Unavailable);
  };
  upstreams.script = async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  };
  const stream = world.stream("RESPONSES", asStream, { principal });
  const begun = stream.next();
  await vi.waitFor(() => expect(isLost).toBe(true), 40_000);
  await world.clock.advance(100);
  await begun;
  expect(await walletOf(world)).toMatchObject({ reserved: funds, spendable: 1_000_000n });
  expect(toldOf()).toBeGreaterThan(fallen.least);
  expect(toldOf()).toBeLessThan(fallen.most);
  // Its row has the amount of the hold, so that a replica that takes the request up knows it too. The first count of a process starts
  // its thread.
  await world.clock.advance(2_600);
  await vi.waitFor(async () => expect(await records()).toHaveLength(1), 40_000);
  const [record] = await records();
  expect(record).toMatchObject({ dispatched: true, holdAmount: funds });
  expect(record?.bounds.output).toBe(toldOf());
  const usage = { inputTokens: 20, cachedInputTokens: 0, outputTokens: toldOf() };
  current.push(events.end({ usage }));
  await stream.rest();
  expect(await walletOf(world)).toMatchObject({
    reserved: 0n,
    spent: 20n + BigInt(toldOf()) * 10n,
  });
});

test("a process that dies between hold and dispatch leaves a hold that is released", async () => {
  const first = await open();
  const held = Promise.withResolvers<void>();
  between = (next) => async (request) => {
    const reply = await next(request);
    if (request.method.name !== "Apply") return reply;
    held.resolve();
    return new Promise(() => {});
  };
  first.ask("RESPONSES", ask, { principal }).catch(() => {});
  await held.promise;
  expect(await walletOf(first)).toMatchObject({ reserved: funds, spendable: 0n });
  first.die();
  between = (next) => next;
  const second = await open(start + 20_000);
  await vi.waitFor(async () => {
    await second.clock.advance(5_000);
    expect(await walletOf(second)).toEqual({ reserved: 0n, spent: 0n, spendable: funds });
    // Billing may have asked before text itself took the request up.
    expect(await records()).toEqual([]);
  }, 40_000);
  expect(upstreams.sent).toHaveLength(0);
});

test("a process that dies while it streams leaves a charge within what was held", async () => {
  const first = await open();
  upstreams.script = async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  };
  const stream = first.stream("RESPONSES", asStream, { principal });
  await stream.next();
  current.push(events.delta("word ".repeat(40)));
  await stream.next();
  await first.clock.advance(2_600);
  // The first count of a process starts its thread.
  await vi.waitFor(
    async () => expect((await records())[0]?.outputTokens).toBeGreaterThan(0),
    40_000,
  );
  first.die();
  const second = await open(start + 20_000);
  await vi.waitFor(async () => {
    await second.clock.advance(1_000);
    expect((await walletOf(second)).reserved).toBe(0n);
  }, 40_000);
  const { spent, spendable } = await walletOf(second);
  expect(spent).toBeGreaterThan(400n);
  expect(spent).toBeLessThan(470n);
  expect(spendable).toBe(funds - spent);
});

test("a billing of before knows the whole amount alone: held where there is enough, else refused", async () => {
  const world = await open();
  between = (next) => async (request) => {
    if (request.method.name !== "Apply" || request.stream) return next(request);
    const { operations } = request.message as unknown as {
      operations: { operation: { value: { leastAmount?: bigint } } }[];
    };
    for (const { operation } of operations) delete operation.value.leastAmount;
    const reply = await next(request);
    const { outcomes } = reply.message as unknown as {
      outcomes: { outcome: { value: { heldAmount?: bigint } } }[];
    };
    for (const { outcome } of outcomes) delete outcome.value.heldAmount;
    return reply;
  };
  await expect(world.ask("RESPONSES", ask, { principal })).rejects.toThrow("max_output_tokens");
  await grant(world, 1_000_000n, "second");
  await world.ask("RESPONSES", ask, { principal });
  expect(upstreams.sent.at(-1)?.maxOutputTokens).toBeUndefined();
});
