import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ErrorReason } from "#kit/errors.ts";
import { createLogger } from "#kit/logger.ts";
import { createMetrics } from "#kit/metrics.ts";
import { openSqlite } from "#kit/sqlite.ts";
import type { ApplyRequest } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { intentOf } from "../../test/contract/usage.suite.ts";
import {
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, type TextWorld } from "../../test/contract/usage.world.ts";
import { createBudgets } from "./budget.ts";
import { createTextEvents } from "./events.ts";
import { createMetered } from "./metered.ts";
import { createSqliteUsageStore } from "./store-sqlite.ts";

const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };

let world: TextWorld;
let upstreams: ScriptedUpstreams;
let current: Feed;
/** What happens before billing hears of operations of this kind. */
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
/** Advances until `asked` is done. */
async function whileTimePasses<T>(asked: Promise<T>): Promise<T> {
  let isDone = false;
  const note = () => {
    isDone = true;
  };
  asked.then(note, note);
  for (let n = 0; !isDone && n < 200; n++) await world.clock.advance(100);
  return asked;
}

describe("an intent", () => {
  test("that was not confirmed within 5 s is never dispatched; its hold is released", async () => {
    before = async (kind) => {
      if (kind === "reserve") await world.clock.advance(5_001);
    };
    await expect(world.ask("RESPONSES", ask, { key: "k" })).rejects.toMatchObject({
      reason: ErrorReason.SERVICE_UNAVAILABLE,
    });
    expect(upstreams.sent).toHaveLength(0);
    await vi.waitFor(async () => {
      expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 0n });
    });
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
    // An equal key with another body already meets it.
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
      if (kind === "settle" && isAway) away();
    };
    current.push(events.end());
    const last = stream.next();
    const startedAt = world.clock.now();
    await whileTimePasses(last);
    expect(await last).toContain("response.completed");
    expect(world.clock.now() - startedAt).toBeLessThanOrEqual(800);
    expect((await world.wallet()).reserved).toBeGreaterThan(0n);
    // Billing is back: the sweeper settles, once, what was decided.
    isAway = false;
    await vi.waitFor(async () => {
      await world.clock.advance(1_000);
      expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: 311n });
    });
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
    };
    const store = createSqliteUsageStore(openSqlite(":memory:"));
    await store.prepare();
    const intent = intentOf(1);
    await store.open(intent);
    const metered = createMetered(
      intent,
      tally,
      {
        clock: world.clock,
        store,
        owner: intent.owner,
        holds: { open: async () => {}, end: async () => {}, isOpen: async () => false },
        events: createTextEvents({ log: createLogger("silent"), metrics: createMetrics() }),
        budgets: createBudgets(world.clock, 500, () => {}),
        patience: createBudgets(world.clock, 10_000, () => {}),
        background() {},
      },
      () => {},
    );
    metered.saw("x".repeat(5_000));
    const reported = { inputTokens: 1, cachedInputTokens: 0, outputTokens: 1 };
    expect(await metered.finish({ kind: "completed", reported })).toEqual({ isOurs: true });
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
