import { describe, expect, test, vi } from "vitest";
import { EntryKind, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import {
  advanceUntil,
  ask,
  asStream,
  booksAgree,
  cost,
  type Fate,
  journal,
  leaseWorld,
  start,
} from "../../test/contract/leases.world.ts";
import { textSteps } from "../../test/contract/text-steps.ts";
import { events, jsonAnswer } from "../../test/contract/usage.upstream.ts";
import { funds, principal, type TextWorld } from "../../test/contract/usage.world.ts";

const on = leaseWorld();
const wallet = { accountId: principal.accountId, unit: Unit.USD_MICROS };

describe("the durable writes of a request, and its calls of billing", () => {
  const json = async () => {
    on.upstreams.script = async () => jsonAnswer();
  };
  const readAll = async (of: TextWorld) => {
    const stream = of.stream("RESPONSES", asStream);
    await stream.next();
    on.current.push(events.delta("word ".repeat(2_000)), events.end());
    expect(await stream.rest()).toContain("response.completed");
  };

  test("are one of each before it is sent, and one of each at its end", async () => {
    const one = { sent: ["call reserve", "write"], told: ["call draw", "write"] };
    expect(await textSteps(on.upstreams, readAll)).toEqual(one);
    await json();
    expect(await textSteps(on.upstreams, (of) => of.ask("RESPONSES", ask))).toEqual(one);
  });
  test("are more writes where an idempotency key has a row, and its answer is counted and kept", async () => {
    await json();
    expect(await textSteps(on.upstreams, (of) => of.ask("RESPONSES", ask, { key: "k" }))).toEqual({
      sent: ["write", "call reserve", "write"],
      told: ["write", "write", "call draw", "write"],
    });
  });
});

describe("a short request", () => {
  test("leaves no row: its hold and its charge are all that is written", async () => {
    on.upstreams.script = async () => {
      expect(await on.rows()).toEqual([]);
      expect((await on.world.wallet()).reserved).toBeGreaterThan(0n);
      return jsonAnswer();
    };
    await on.world.ask("RESPONSES", ask);
    expect(await on.rows()).toEqual([]);
    expect((await journal(on.world)).map(({ kind }) => kind)).toEqual([
      EntryKind.HOLD,
      EntryKind.DRAW,
    ]);
    await booksAgree(on.world);
  });
  test("is told in the entry of its charge, without a word of what its caller wrote", async () => {
    const stream = await on.streaming();
    const usage = { inputTokens: 20, cachedInputTokens: 10, outputTokens: 30, reasoningTokens: 7 };
    await on.world.clock.advance(1_000);
    on.current.push(events.end({ usage }));
    await stream.rest();
    const entry = (await journal(on.world)).at(-1);
    expect(entry?.operationId).toBe(`charge:${entry?.holdId}`);
    expect(entry?.ref).toBe("req_test");
    expect(entry?.spentDelta).toBe(cost);
    expect(entry?.record).toMatchObject({
      ...{ model: "chat-1", operation: "responses", status: "completed", streamed: true },
      ...{ estimated: false, upstream: "up", inputTokens: 20n, cachedInputTokens: 10n },
      ...{ outputTokens: 30n, reasoningTokens: 7n },
    });
    const { startTime, firstOutputTime, endTime } = entry?.record ?? {};
    expect(startTime?.seconds).toBe(BigInt(start / 1_000));
    expect(firstOutputTime?.seconds).toBe(startTime?.seconds);
    expect(endTime?.seconds).toBe(BigInt(start / 1_000) + 1n);
    const text = JSON.stringify(entry, (_, value) =>
      typeof value === "bigint" ? `${value}` : value,
    );
    expect(text).not.toMatch(/sea|word/);
  });
  test("that failed has an entry, too, and costs nothing", async () => {
    const stream = await on.streaming();
    on.current.push(events.end({ ending: "failed", usage: undefined }));
    await stream.rest();
    const entry = (await journal(on.world)).at(-1);
    expect(entry?.record).toMatchObject({ status: "failed", outputTokens: 0n });
    expect(entry?.spentDelta).toBe(0n);
    await booksAgree(on.world);
  });
  test("whose process died costs nothing; its hold stands until billing has asked", async () => {
    await on.streaming();
    on.world.die();
    const second = await on.open(start + 59_000);
    await second.clock.advance(500);
    expect((await second.wallet()).reserved).toBeGreaterThan(0n);
    await advanceUntil(second, async () => {
      expect(await second.wallet()).toMatchObject({ reserved: 0n, spent: 0n, spendable: funds });
    });
    await booksAgree(second);
  });
});

describe("a stream of two seconds and more", () => {
  test("has a row with what was counted, which goes with its charge", async () => {
    const stream = await on.streaming();
    await on.world.clock.advance(1_900);
    expect(await on.rows()).toEqual([]);
    await on.world.clock.advance(200);
    await vi.waitFor(async () => expect(await on.rows()).toHaveLength(1), 40_000);
    const [row] = await on.rows();
    expect(row?.status).toBe("open");
    expect(row?.outputTokens).toBeGreaterThanOrEqual(40);
    on.current.push(events.end());
    expect(await stream.rest()).toContain("response.completed");
    expect(await on.world.wallet()).toMatchObject({ reserved: 0n, spent: cost });
    await vi.waitFor(async () => expect(await on.rows()).toEqual([]), 40_000);
    await booksAgree(on.world);
  });
  test("costs its last checkpoint where its process dies, once, by the sweep or by billing's question", async () => {
    await on.streaming(2_600);
    on.world.die();
    const second = await on.open(start + 70_000);
    const holdId = (await on.rows())[0]?.requestId ?? "";
    const asked = { holdId, accountId: principal.accountId };
    await Promise.all([
      second.clock.advance(3_000),
      second.peers.text.resolveHold(asked),
      second.peers.text.resolveHold(asked),
    ]);
    await advanceUntil(second, async () => expect(await on.rows()).toEqual([]));
    const { spent } = await second.wallet();
    expect(spent).toBeGreaterThan(400n);
    expect(spent).toBeLessThan(470n);
    const drawn = (await journal(second)).filter(({ kind }) => kind === EntryKind.DRAW);
    expect(drawn).toHaveLength(1);
    expect(drawn[0]?.record).toMatchObject({ status: "lost", estimated: true });
    await booksAgree(second);
  });
});

describe("the end of a request", () => {
  test("is not told before its charge is drawn, or stands in a row", async () => {
    const stream = await on.streaming();
    const drawing = Promise.withResolvers<Fate>();
    const asked = Promise.withResolvers<void>();
    on.fate = (kind) => {
      if (kind !== "draw") return "pass";
      asked.resolve();
      return drawing.promise;
    };
    on.current.push(events.end());
    const isTold = vi.fn();
    const last = stream.next();
    void last.then(isTold);
    await asked.promise;
    expect(isTold).not.toHaveBeenCalled();
    drawing.resolve("pass");
    expect(await last).toContain("response.completed");
    expect(await on.world.wallet()).toMatchObject({ reserved: 0n, spent: cost });
  });
  test("after 500 ms goes out on a row: charged in full though its process dies", async () => {
    const stream = await on.streaming();
    on.fate = (kind) => (kind === "draw" ? "never" : "pass");
    on.current.push(events.end());
    const last = stream.next();
    for (let n = 0; n < 8; n++) await on.world.clock.advance(100);
    expect(await last).toContain("response.completed");
    expect(await on.rows()).toMatchObject([{ status: "settling", charge: { amount: cost } }]);
    on.world.die();
    on.fate = () => "pass";
    // Billing asks first.
    const second = await on.open(start + 60_000);
    const holdId = (await on.rows())[0]?.requestId ?? "";
    const { verdict } = await second.peers.text.resolveHold({ ...principal, holdId });
    expect(verdict?.verdict).toEqual({ case: "release", value: true });
    expect(await second.wallet()).toMatchObject({ reserved: 0n, spent: cost });
    await booksAgree(second);
  });
  test.each([
    ["lost reply", ["reply lost", "pass"]],
    ["lost twice", ["lost", "reply lost", "pass"]],
  ] as const)("is charged once where the draw has a %s", async (_, fates) => {
    const left: Fate[] = [...fates];
    const stream = await on.streaming();
    on.fate = (kind) => (kind === "draw" ? (left.shift() ?? "pass") : "pass");
    on.current.push(events.end());
    const last = stream.rest();
    await advanceUntil(on.world, async () => expect(left).toEqual([]), 200);
    expect(await last).toContain("response.completed");
    expect(await on.world.wallet()).toMatchObject({ reserved: 0n, spent: cost });
    await booksAgree(on.world);
  });
  test("that another process has drawn otherwise is response.failed", async () => {
    const stream = await on.streaming();
    const holdId = (await journal(on.world))[0]?.holdId ?? "";
    await on.world.admin.billing.endHold({ ...wallet, holdId, settleAmount: 5n });
    on.current.push(events.end());
    const text = await stream.rest();
    expect(text).not.toContain("response.completed");
    expect(text).toContain("response.failed");
    expect(await on.world.wallet()).toMatchObject({ reserved: 0n, spent: 5n });
    await booksAgree(on.world);
  });
});
