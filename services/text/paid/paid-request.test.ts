import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { type ApplyRequest, HoldState } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { intentOf } from "../../../test/contract/usage.suite.ts";
import {
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../../test/contract/usage.upstream.ts";
import { createTextWorld, type TextWorld } from "../../../test/contract/usage.world.ts";
import { createTextEvents } from "../base/events.ts";
import { UnderWay } from "../base/under-way.ts";
import type { Intent, UsageStore } from "../store/store.ts";
import { createSqliteUsageStore } from "../store/store-sqlite.ts";
import { createBudgets } from "./budget.ts";
import { MeteredRequest } from "./paid-request.ts";
import type { TextHolds } from "./text-holds.ts";

const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };

let world: TextWorld;
let upstreams: ScriptedUpstreams;
let current: Feed;
/** Runs before billing gets operations of this kind. */
let before: (kind: string | undefined) => Promise<void>;

const between: Interceptor = (next) => async (request) => {
  if (request.method.name === "Apply" && !request.stream) {
    const { operations } = request.message as ApplyRequest;
    await before(operations[0]?.operation.case);
  }
  return next(request);
};

beforeEach(async () => {
  before = async () => {};
  upstreams = scriptedUpstreams(async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  world = await createTextWorld({ upstreams, between });
});
afterEach(() => world[Symbol.asyncDispose]());

const away = () => {
  throw new ConnectError("away", Code.Unavailable);
};
/** Advances the clock until `asked` is done. */
async function whileTimePasses<T>(asked: Promise<T>): Promise<T> {
  let isDone = false;
  const note = () => {
    isDone = true;
  };
  asked.then(note, note);
  for (let n = 0; !isDone && n < 200; n++) await world.clock.advance(100);
  return asked;
}

const drawnAsAsked: TextHolds["draw"] = async (_request, { amount }) => amount ?? 0n;

describe("an intent", () => {
  test("whose money was not held within 5 s is never dispatched; its hold is ended", async () => {
    before = async (kind) => {
      if (kind === "reserve") await world.clock.advance(5_001);
    };
    await expect(world.ask("RESPONSES", ask, { key: "k" })).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
    expect(upstreams.sent).toHaveLength(0);
    await vi.waitFor(async () => {
      expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
    }, 40_000);
    before = async () => {};
    upstreams.script = async () => jsonAnswer();
    expect((await world.ask("RESPONSES", ask, { key: "k" })).replayed).toBe(false);
  });
  test("whose hold cannot be opened is not dispatched, and leaves nothing", async () => {
    before = async (kind) => {
      if (kind === "reserve") away();
    };
    const asked = world.ask("RESPONSES", ask);
    await expect(whileTimePasses(asked)).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
    expect(upstreams.sent).toHaveLength(0);
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
  });
  test("is written before the hold is opened", async () => {
    const held = Promise.withResolvers<string>();
    const go = Promise.withResolvers<void>();
    before = async (kind) => {
      if (kind !== "reserve") return;
      held.resolve("asked");
      await go.promise;
    };
    upstreams.script = async () => jsonAnswer();
    const asked = world.ask("RESPONSES", ask, { key: "k" });
    await held.promise;
    // A request with an equal key and another body finds it already.
    await expect(
      world.ask("RESPONSES", { ...ask, input: "Other." }, { key: "k" }),
    ).rejects.toMatchObject({ reason: ErrorReason.IDEMPOTENCY_KEY_REUSED });
    go.resolve();
    await asked;
  });
});

describe("settling", () => {
  test("that takes long does not keep the answer back beyond its budget", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    let isAway = true;
    before = async (kind) => {
      if (kind === "draw" && isAway) away();
    };
    current.push(events.end());
    const last = stream.next();
    for (let n = 0; n < 8; n++) await world.clock.advance(100);
    // The clock stands still. Billing is not called again before the answer is sent.
    expect(await last).toContain("response.completed");
    expect((await world.wallet()).reserved).toBeGreaterThan(0n);
    // Billing is back. The sweep settles the decided charge once.
    isAway = false;
    await vi.waitFor(async () => {
      await world.clock.advance(1_000);
      expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 311n });
    }, 40_000);
  });
});

describe("the end of an answer", () => {
  const reported = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };

  async function ending(intent: Intent) {
    const { clock } = world;
    const store = createSqliteUsageStore(openSqlite(":memory:"));
    await store.prepare();
    await store.open(intent);
    const go = Promise.withResolvers<void>();
    const slow: UsageStore = {
      ...store,
      async close(...close) {
        await go.promise;
        return store.close(...close);
      },
    };
    const budgets = createBudgets(clock, 500, () => {});
    const tally = {
      uncounted: 0,
      add() {},
      input: async () => 1,
      output: async () => 1,
      guess: () => [1, 1] as [number, number],
      most: () => [1, 1] as [number, number],
    };
    const metered = new MeteredRequest(
      {
        ...{ intent, tally, openedAt: clock.steady() },
        keyLimit: undefined,
      },
      {
        clock,
        store: slow,
        owner: intent.owner,
        holds: {
          open: async () => ({ state: HoldState.OPEN, held: 0n }),
          draw: drawnAsAsked,
          isOpen: async () => false,
        },
        events: createTextEvents({ log: createLogger("silent"), metrics: createMetrics() }),
        budgets,
        patience: createBudgets(clock, 10_000, () => {}),
        ending: new UnderWay(),
        background() {},
      },
      () => {},
    );
    const isDone = vi.fn();
    const answer = () => (intent.idempotency ? Buffer.from("{}") : undefined);
    const finished = metered.finish({ kind: "completed", reported, answer });
    void finished.then(isDone);
    // The end is decided, and is being recorded.
    await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(600);
    budgets.tick();
    await new Promise((resolve) => setImmediate(resolve));
    const wasEarly = isDone.mock.calls.length > 0;
    go.resolve();
    expect(await finished).toMatchObject({ isOurs: true });
    return wasEarly;
  }

  test("waits for the record where a repeat would look for it, and else for none", async () => {
    const idempotency = { key: "k", fingerprint: "f" };
    expect(await ending(intentOf(1, { idempotency }))).toBe(false);
    expect(await ending(intentOf(2))).toBe(true);
  });
});

describe("an end whose charge is not drawn within 500 ms", () => {
  const reported = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };

  /** A request without a row whose charge gets no answer. `stallMs`: its process stood still for this long. */
  async function ending(stallMs: number, change: Partial<UsageStore> = {}) {
    const { clock } = world;
    const store = createSqliteUsageStore(openSqlite(":memory:"));
    await store.prepare();
    const budgets = createBudgets(clock, 500, () => {});
    const drawn = Promise.withResolvers<bigint>();
    const intent = intentOf(1);
    const metered = new MeteredRequest(
      {
        ...{ intent, openedAt: clock.steady(), keyLimit: undefined },
        tally: {
          ...{ uncounted: 0, add() {}, input: async () => 1, output: async () => 1 },
          guess: () => [1, 1] as [number, number],
          most: () => [1, 1] as [number, number],
        },
      },
      {
        ...{ clock, budgets, owner: intent.owner, store: { ...store, ...change } },
        holds: {
          open: async () => ({ state: HoldState.OPEN, held: 0n }),
          draw: () => drawn.promise,
          isOpen: async () => false,
        },
        events: createTextEvents({ log: createLogger("silent"), metrics: createMetrics() }),
        patience: createBudgets(clock, 10_000, () => {}),
        ending: new UnderWay(),
        background() {},
      },
      () => {},
    );
    await clock.leap(stallMs);
    const isDone = vi.fn();
    const finished = metered.finish({ kind: "completed", reported });
    void finished.then(isDone);
    await new Promise((resolve) => setImmediate(resolve));
    await clock.leap(600);
    budgets.tick();
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    const isTold = isDone.mock.calls.length > 0;
    const amount = (await store.find(intent.requestId))?.charge?.amount;
    return { isTold, amount, drawn, finished };
  }

  test("is told on a row in its place, which the sweeper draws", async () => {
    expect(await ending(0)).toMatchObject({ isTold: true, amount: expect.any(BigInt) });
  });
  test("is not told on a row that came when the lease was over: only the draw decides", async () => {
    for (const wins of [true, false]) {
      const { isTold, amount, drawn, finished } = await ending(31_000);
      expect(isTold).toBe(false);
      expect(amount).toEqual(expect.any(BigInt));
      drawn.resolve(wins ? (amount ?? 0n) : 0n);
      expect((await finished).isOurs).toBe(wins);
    }
  });
  test("is not told where the row cannot be written either", async () => {
    const gone = async () => {
      throw new Error("no row");
    };
    const { isTold, drawn, finished } = await ending(0, { open: gone, close: gone });
    expect(isTold).toBe(false);
    drawn.resolve(7n);
    expect((await finished).isOurs).toBe(false);
  });
});

describe("an answer that came whole", () => {
  test("is not counted where upstream has: its text and the prompt are left alone", async () => {
    const asked: string[] = [];
    const count = (what: string) => async () => {
      asked.push(what);
      return 1;
    };
    const tally = {
      uncounted: 5_000,
      add() {},
      input: count("input"),
      output: count("output"),
      guess: () => [1, 1] as [number, number],
      most: () => [1, 1] as [number, number],
    };
    const store = createSqliteUsageStore(openSqlite(":memory:"));
    await store.prepare();
    const intent = intentOf(1);
    await store.open(intent);
    const metered = new MeteredRequest(
      {
        ...{ intent, tally, openedAt: world.clock.steady() },
        keyLimit: undefined,
      },
      {
        clock: world.clock,
        store,
        owner: intent.owner,
        holds: {
          open: async () => ({ state: HoldState.OPEN, held: 0n }),
          draw: drawnAsAsked,
          isOpen: async () => false,
        },
        events: createTextEvents({ log: createLogger("silent"), metrics: createMetrics() }),
        budgets: createBudgets(world.clock, 500, () => {}),
        patience: createBudgets(world.clock, 10_000, () => {}),
        ending: new UnderWay(),
        background() {},
      },
      () => {},
    );
    metered.saw("x".repeat(5_000));
    // A request with any amount of output is not recorded either before it is 2 s old.
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toEqual([]);
    const reported = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
    expect(await metered.finish({ kind: "completed", reported })).toMatchObject({
      isOurs: true,
      estimate: undefined,
    });
    expect(asked).toEqual([]);
  });
});

describe("a running request", () => {
  test("lives on for minutes without output", async () => {
    const stream = world.stream("RESPONSES", asStream);
    await stream.next();
    for (let n = 0; n < 12; n++) await world.clock.advance(10_000);
    current.push(events.delta("At last."), events.end());
    expect(await stream.rest()).toContain("response.completed");
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 311n });
  });
});
