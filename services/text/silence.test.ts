import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test, vi } from "vitest";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  events,
  type Feed,
  feed,
  jsonAnswer,
  type Script,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import {
  createTextWorld,
  snapshotWith,
  type TextWorld,
  type TextWorldOptions,
} from "../../test/contract/usage.world.ts";
import { usageWaitMs } from "./base/limits.ts";
import { createSqliteUsageStore } from "./store/store-sqlite.ts";

// A token of output costs 10 micros, one of input 1. The hold is for at most 1,000 tokens of output.
const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };
/** More than the input of these requests costs. */
const inputCost = 60n;
/** Ten seconds of silence of a model with `hiddenTokensPerSecond: 50`. */
const silence = { ms: 10_000, cost: 500n * 10n };

const worlds: TextWorld[] = [];
let folder: string | undefined;
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** A world whose model counts a second of silence as this many tokens. */
async function worldOf(
  hiddenTokensPerSecond: bigint,
  script: Script,
  options: Partial<TextWorldOptions> = {},
): Promise<TextWorld> {
  const upstreams = scriptedUpstreams(script);
  const snapshot = snapshotWith({ hiddenTokensPerSecond });
  const world = await createTextWorld({ upstreams, snapshot, ...options });
  worlds.push(world);
  return world;
}

/** The charge, once there is no hold left. */
async function settled(world: TextWorld): Promise<bigint> {
  await vi.waitFor(async () => expect((await world.wallet()).reserved).toBe(0n), 40_000);
  return (await world.wallet()).spent;
}

/** Leaves a stream that is silent for `beforeMs` before its first text, and for `behindMs` behind it. */
async function leaveStream(rate: bigint, beforeMs: number, behindMs: number): Promise<bigint> {
  let current: Feed | undefined;
  const world = await worldOf(rate, async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  const stream = world.stream("RESPONSES", asStream);
  await stream.next();
  await world.clock.advance(beforeMs);
  current?.push(events.delta("word"));
  await stream.next();
  const pulled = stream.next();
  await world.clock.advance(behindMs);
  await Promise.allSettled([stream[Symbol.asyncDispose](), pulled]);
  return settled(world);
}

/** Leaves before the upstream has answered at all. With `isAnswering` it leaves when a whole answer is on its way. */
async function leaveUnanswered(
  rate: bigint,
  stream: boolean,
  ms: number,
  isAnswering = false,
): Promise<bigint> {
  const sent = Promise.withResolvers<void>();
  const world = await worldOf(rate, ({ signal, onAnswering }) => {
    if (isAnswering) onAnswering?.();
    sent.resolve();
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  });
  const gone = new AbortController();
  const asked = world
    .stream("RESPONSES", { ...ask, stream }, { signal: gone.signal })
    .next()
    .catch(() => {});
  await sent.promise;
  await world.clock.advance(ms);
  gone.abort();
  if (isAnswering) await world.clock.advance(usageWaitMs);
  await asked;
  return settled(world);
}

test("a caller that leaves pays what its model's catalog entry says for the time without output", async () => {
  const before = await leaveStream(50n, silence.ms, 0);
  expect(before).toBeGreaterThanOrEqual(silence.cost);
  expect(before).toBeLessThan(silence.cost + inputCost + 20n);
  const both = await leaveStream(50n, 5_000, 5_000);
  expect(both).toBe(before);
});

test.for([true, false])(
  "and so does one that leaves before any answer, stream %j",
  async (stream) => {
    const cost = await leaveUnanswered(50n, stream, silence.ms);
    expect(cost).toBeGreaterThanOrEqual(silence.cost);
    expect(cost).toBeLessThan(silence.cost + inputCost);
  },
);

test("a whole answer that is on its way is no silence", async () => {
  expect(await leaveUnanswered(50n, false, silence.ms, true)).toBeLessThan(inputCost);
});

test("a stream that breaks while its caller holds it back costs what leaving costs", async () => {
  for (const isHeld of [true, false]) {
    let current: Feed | undefined;
    const world = await worldOf(50n, async ({ signal }) => {
      current = feed(signal);
      current.push(events.begin());
      return { ...current.answer, isHeldBack: () => isHeld };
    });
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    await world.clock.advance(silence.ms);
    current?.break(new Error("broken"));
    expect(await stream.rest()).toContain("response.failed");
    const cost = await settled(world);
    if (isHeld) expect(cost).toBeGreaterThanOrEqual(silence.cost);
    else expect(cost).toBe(0n);
  }
});

test("never more than its hold", async () => {
  const cost = await leaveUnanswered(50n, true, 25_000);
  expect(cost).toBeGreaterThanOrEqual(10_000n);
  expect(cost).toBeLessThan(10_000n + inputCost);
});

test("without such an entry silence costs nothing", async () => {
  expect(await leaveUnanswered(0n, true, silence.ms)).toBeLessThan(inputCost);
  expect(await leaveUnanswered(0n, false, silence.ms)).toBeLessThan(inputCost);
  expect(await leaveStream(0n, silence.ms, silence.ms)).toBeLessThan(inputCost + 20n);
});

test("no other end is charged for it", async () => {
  const usage = undefined;
  const text = "one two three four five six seven eight nine ten";
  let world = await worldOf(50n, async () => {
    await world.clock.advance(silence.ms);
    return jsonAnswer({ text, usage });
  });
  await world.ask("RESPONSES", ask);
  const completed = (await world.wallet()).spent;
  expect(completed).toBeGreaterThanOrEqual(100n);
  expect(completed).toBeLessThan(100n + inputCost);

  let current: Feed | undefined;
  world = await worldOf(50n, async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  const stream = world.stream("RESPONSES", asStream);
  await stream.next();
  await world.clock.advance(silence.ms);
  current?.push(events.delta("word"));
  await stream.next();
  await world.text.drain(AbortSignal.abort());
  expect(await stream.rest()).toContain("response.failed");
  expect(await settled(world)).toBeLessThan(inputCost + 20n);
});

test("a process that dies leaves its checkpoint to be charged, in which there is no silence", async () => {
  folder = await mkdtemp(join(tmpdir(), "genmesh-silence-"));
  const file = join(folder, "genmesh.db");
  const script: Script = async ({ signal }) => {
    const current = feed(signal);
    current.push(events.begin());
    return current.answer;
  };
  const first = await worldOf(50n, script, { file });
  const openedAt = first.clock.now();
  await first.stream("RESPONSES", asStream, { key: "one" }).next();
  const rows = createSqliteUsageStore(openSqlite(file));
  await vi.waitFor(async () => {
    await first.clock.advance(1_000);
    const [row] = await rows.due(Number.MAX_SAFE_INTEGER, 10);
    expect(row?.inputTokens).toBeGreaterThan(0);
    expect(first.clock.now()).toBeGreaterThan(openedAt + silence.ms);
    // The first count of a process starts its thread.
  }, 40_000);
  first.die();
  const clock = manualClock(first.clock.now() + 40_000);
  const second = await worldOf(50n, script, { file, isNew: false, clock });
  await vi.waitFor(async () => {
    await clock.advance(5_000);
    expect((await second.wallet()).reserved).toBe(0n);
  }, 40_000);
  const { spent } = await second.wallet();
  expect(spent).toBeGreaterThan(0n);
  expect(spent).toBeLessThan(inputCost);
});
