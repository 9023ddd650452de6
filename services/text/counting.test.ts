import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { leaseMs } from "#common/paid-work/limits.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { HoldState } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { intentOf } from "../../test/contract/usage.suite.ts";
import {
  events,
  type Feed,
  feed,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, type TextWorld } from "../../test/contract/usage.world.ts";
import { createTextEvents } from "./base/events.ts";
import { countPatienceMs, stopCountsMs } from "./base/limits.ts";
import { UnderWay } from "./base/under-way.ts";
import { createBudgets } from "./paid/budget.ts";
import { MeteredRequest } from "./paid/paid-request.ts";
import { noMedia } from "./request/media.ts";
import { createSqliteUsageStore } from "./store/store-sqlite.ts";
import type { TokenCounter } from "./tokens/count.ts";
import { CountError } from "./tokens/count.ts";
import { createTally } from "./tokens/tally.ts";

const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };
/** Sixty characters: fifteen tokens by a guess, at ten micros each. */
const text = "The sea is wide. ".repeat(4).slice(0, 60);

let world: TextWorld;
let upstreams: ScriptedUpstreams;
let current: Feed;
/** The counter's present behaviour. */
let count: TokenCounter["count"];
let counts: number;

const away = async () => {
  throw new CountError("away");
};
const never = () => new Promise<never>(() => {});

beforeEach(async () => {
  counts = 0;
  upstreams = scriptedUpstreams(async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  const counter: TokenCounter = {
    count(...asked) {
      counts++;
      return count(...asked);
    },
    async measure(texts, accountId) {
      counts++;
      const tokens = await count(texts, undefined, accountId);
      return { tokens, most: tokens };
    },
  };
  world = await createTextWorld({ upstreams, counter });
});
afterEach(() => world[Symbol.asyncDispose]());

/** A stream through which {@link text} was sent. */
async function streamed() {
  const stream = world.stream("RESPONSES", asStream);
  await stream.next();
  current.push(events.delta(text));
  await stream.next();
  return stream;
}
const settled = async () => {
  await vi.waitFor(async () => expect((await world.wallet()).reserved).toBe(0n), 40_000);
  return (await world.wallet()).spent;
};
/** The input by a guess at one micro a token, and fifteen tokens of output at ten. */
const expectGuessed = (spent: bigint) => {
  expect(spent).toBeGreaterThan(150n);
  expect(spent).toBeLessThan(190n);
};

describe("where tokens cannot be counted", () => {
  beforeEach(() => {
    count = away;
  });

  test("a caller that left pays a guess", async () => {
    const stream = await streamed();
    await stream[Symbol.asyncDispose]();
    expectGuessed(await settled());
  });
  test("an answer without usage costs a guess, and is given", async () => {
    const stream = await streamed();
    current.push(events.end({ usage: undefined }));
    expect(await stream.rest()).toContain("response.completed");
    expectGuessed(await settled());
  });
  test("a running request lives, and reported usage is what it costs", async () => {
    const stream = await streamed();
    for (let n = 0; n < 12; n++) await world.clock.advance(10_000);
    expect(counts).toBeGreaterThan(2);
    current.push(events.end());
    expect(await stream.rest()).toContain("response.completed");
    expect(await settled()).toBe(311n);
  });
});

describe("where a count does not end", () => {
  test("a stopping process waits for it a while, then charges a guess", async () => {
    count = never;
    const stream = await streamed();
    await stream[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(counts).toBeGreaterThan(0), 40_000);
    let isDrained = false;
    const drained = world.text.drain(AbortSignal.abort()).then(() => {
      isDrained = true;
    });
    await world.clock.advance(stopCountsMs - 100);
    expect(isDrained).toBe(false);
    expect((await world.wallet()).reserved).toBeGreaterThan(0n);
    await vi.waitFor(async () => {
      await world.clock.advance(100);
      expect(isDrained).toBe(true);
    }, 40_000);
    await drained;
    expectGuessed(await settled());
  });

  test("a late one changes nothing about a request that is closed", async () => {
    const late = Promise.withResolvers<number>();
    count = () => late.promise;
    const stream = await streamed();
    await world.clock.advance(2_600);
    expect(counts).toBeGreaterThan(0);
    current.push(events.end());
    expect(await stream.rest()).toContain("response.completed");
    expect(await settled()).toBe(311n);
    late.resolve(1_000_000);
    await world.clock.advance(20_000);
    expect(await settled()).toBe(311n);
    expect(await world.metrics.text()).not.toMatch(/genmesh_text_lost_total [1-9]/);
  });

  test("the counting thread is asked before the first checkpoint, so that it is loaded by then", async () => {
    count = async () => 7;
    const stream = await streamed();
    expect(counts).toBe(0);
    await world.clock.advance(1_500);
    await vi.waitFor(() => expect(counts).toBe(1), 40_000);
    current.push(events.end());
    await stream.rest();
  });

  test("a checkpoint is written by a guess, and the lease with it; the next one by count", async () => {
    const { clock } = world;
    const store = createSqliteUsageStore(openSqlite(":memory:"));
    await store.prepare();
    const intent = intentOf(1, { openedAt: clock.now(), leaseUntil: clock.now() + leaseMs });
    const slow = Promise.withResolvers<number>();
    count = () => slow.promise;
    const patience = createBudgets(clock, countPatienceMs, () => {});
    const tally = createTally(
      {
        body: { input: "x" },
        media: noMedia,
        items: 0,
        mediaTokens: { estimate: 0, held: 0, most: 0, least: 0 },
        toolTokens: 0,
        guessedInput: intent.inputTokens,
      },
      {
        count: (...asked) => count(...asked),
        async measure(texts) {
          const tokens = await count(texts);
          return { tokens, most: tokens };
        },
      },
      () => {},
    );
    const metered = new MeteredRequest(
      {
        ...{ intent, tally, openedAt: clock.steady() },
        keyLimit: undefined,
      },
      {
        clock,
        store,
        owner: intent.owner,
        holds: {
          open: async () => ({ state: HoldState.OPEN, held: 0n }),
          draw: async () => 0n,
          isOpen: async () => false,
        },
        events: createTextEvents({ log: createLogger("silent"), metrics: createMetrics() }),
        budgets: createBudgets(clock, 500, () => {}),
        patience,
        ending: new UnderWay(),
        background() {},
      },
      () => {},
    );
    metered.isSent = true;
    metered.saw(text);
    const beatAfter = async (ms: number) => {
      await clock.advance(ms);
      patience.tick();
      metered.beat();
    };
    const written = (inputTokens: number, outputTokens: number, leaseUntil: number) =>
      vi.waitFor(async () => {
        expect(await store.find(intent.requestId)).toMatchObject({
          inputTokens,
          outputTokens,
          leaseUntil,
        });
      }, 40_000);
    await beatAfter(2_000);
    await beatAfter(countPatienceMs);
    await written(11, 15, intent.openedAt + 2_000 + leaseMs);
    slow.resolve(7);
    await beatAfter(2_000);
    await written(7, 7, intent.openedAt + 4_000 + countPatienceMs + leaseMs);
  });
});
