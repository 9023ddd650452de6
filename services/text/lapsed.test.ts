import { describe, expect, test, vi } from "vitest";
import { ErrorReason } from "#kit/base/errors.ts";
import { createLogger } from "#kit/base/logger.ts";
import { createMetrics } from "#kit/base/metrics.ts";
import { HoldKind, HoldState, Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import {
  advanceUntil,
  booksAgree,
  cost,
  journal,
  leaseWorld,
  start,
} from "../../test/contract/leases.world.ts";
import { intentOf } from "../../test/contract/usage.suite.ts";
import { events } from "../../test/contract/usage.upstream.ts";
import { funds, principal } from "../../test/contract/usage.world.ts";
import { createTextEvents } from "./base/events.ts";
import { noCharge } from "./metering/charge.ts";
import { createReaper } from "./paid/reaper.ts";

const on = leaseWorld();
const wallet = { accountId: principal.accountId, unit: Unit.USD_MICROS };

describe("a process that stood still beyond its lease", () => {
  test("ends its stream: a row that comes too late covers nothing", async () => {
    const stream = await on.streaming();
    await on.world.clock.leap(31_000);
    const rest = stream.rest();
    await advanceUntil(on.world, async () => expect(on.current.isAborted).toBe(true), 100);
    expect(await rest).toContain("response.failed");
    await advanceUntil(on.world, async () => expect(await on.rows()).toEqual([]), 5_000);
    const { reserved, spent } = await on.world.wallet();
    expect(reserved).toBe(0n);
    expect(spent).toBeLessThan(470n);
    await booksAgree(on.world);
  });
});

describe("a hold that was closed under its request", () => {
  /** A stream whose hold billing has closed, because its lease is over and text has no row of it. */
  async function lapsed() {
    const stream = await on.streaming();
    const holdId = (await journal(on.world))[0]?.holdId ?? "";
    // Like a stall: everything that was asleep wakes late.
    on.world.clock.set(61_000);
    await advanceUntil(
      on.world,
      async () => {
        expect((await on.world.wallet()).reserved).toBe(0n);
      },
      300,
    );
    return { stream, holdId };
  }

  test("is charged out of what is free", async () => {
    const { stream, holdId } = await lapsed();
    on.current.push(events.end());
    expect(await stream.rest()).toContain("response.completed");
    const drawn = (await journal(on.world)).at(-1);
    expect(drawn).toMatchObject({ holdId, freeDelta: -cost, heldDelta: 0n, spentDelta: cost });
    await booksAgree(on.world);
  });
  test("fails, uncharged for good, where that is not enough", async () => {
    const { stream, holdId } = await lapsed();
    const other = { ...wallet, keyId: "key_other", kind: HoldKind.JOB, ref: "job" };
    const amount = funds - cost + 1n;
    const reserve = { ...other, holdId: "hold_other", amount };
    await on.world.peers.billing.reserve({ ...reserve, checkTime: { seconds: 4_000_000_000n } });
    on.current.push(events.end());
    expect(await stream.rest()).toContain("response.failed");
    await on.world.peers.billing.release({ ...wallet, holdId: "hold_other" });
    // A late copy of the charge finds that it was decided.
    const again = { ...wallet, holdId, amount: cost, keyId: "key_test", fromFree: true };
    const operation = { case: "draw", value: again } as const;
    const { outcomes } = await on.world.peers.billing.apply({ operations: [{ operation }] });
    expect(outcomes[0]?.outcome).toMatchObject({ case: "draw", value: { chargedAmount: 0n } });
    expect(await on.world.wallet()).toMatchObject({ reserved: 0n, spent: 0n, spendable: funds });
    await booksAgree(on.world);
  });
});

describe("the sweep", () => {
  test("records that a row without a hold costs nothing, and keeps the hold from being opened", async () => {
    const store = on.usage();
    const idempotency = { key: "k", fingerprint: "f" };
    const intent = intentOf(1, {
      ...{ ...principal, holdAmount: 5_000n, openedAt: start, leaseUntil: start + 30_000 },
      // Its tokens are not charged: other processes may charge only within a hold.
      ...{ inputTokens: 11, outputTokens: 3, idempotency },
    });
    await store.open(intent);
    await on.world.clock.advance(31_500);
    await vi.waitFor(
      async () => expect(await store.find(intent.requestId)).toBeUndefined(),
      40_000,
    );
    expect(await journal(on.world)).toMatchObject([
      { operationId: `charge:${intent.requestId}`, spentDelta: 0n, heldDelta: 0n },
    ]);
    const late = on.world.peers.billing.reserve({
      ...{ ...wallet, holdId: intent.requestId, amount: 5_000n, kind: HoldKind.TEXT },
      ...{ keyId: "key_test", ref: intent.requestId, checkTime: { seconds: 4_000_000_000n } },
    });
    await expect(late).rejects.toMatchObject({ reason: ErrorReason.OPERATION_CONFLICT });
    await booksAgree(on.world);
  });
  test("draws nothing of a request that its process ended in the same moment", async () => {
    const { clock } = on.world;
    const store = on.usage();
    const intent = intentOf(1, { openedAt: start, leaseUntil: start });
    await store.open(intent);
    const drawn: (bigint | undefined)[] = [];
    const charge = { ...noCharge, amount: 77n };
    const reaper = createReaper({
      clock,
      leaseTime: () => start + 1,
      store: {
        ...store,
        async close(requestId, closer, closing, at) {
          // The request's own process is first.
          const own = { kind: "settling", end: "completed", charge } as const;
          await store.close(requestId, { owner: intent.owner }, own, at);
          return store.close(requestId, closer, closing, at);
        },
      },
      holds: {
        open: async () => ({ state: HoldState.OPEN, held: 0n }),
        isOpen: async () => false,
        draw: async (_request, { amount }) => {
          drawn.push(amount);
          return amount ?? 0n;
        },
      },
      events: createTextEvents({ log: createLogger("silent"), metrics: createMetrics() }),
    });
    await reaper.sweep();
    expect(drawn).toEqual([]);
    expect(await store.find(intent.requestId)).toMatchObject({ status: "settling", charge });
    expect((await reaper.verdictOn(intent.requestId, intent.accountId)).case).toBe("release");
    expect(drawn).toEqual([77n]);
  });
});
