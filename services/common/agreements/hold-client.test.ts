import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  type ApplyRequest,
  type ApplyResponse,
  ApplyResponseSchema,
  HoldKind,
  HoldState,
  type Outcome,
  Unit,
} from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { KeyLimitReset } from "#proto/genmesh/common/v1/access_pb.ts";
import { billingWorld } from "../../../test/contract/ledger.world.ts";
import type { HoldClient, NewHold } from "./hold-client.ts";
import { holdClientOf } from "./hold-wire.ts";

const usd = { accountId: "acct_a", unit: Unit.USD_MICROS };
const checkTimeMs = Date.UTC(2026, 0, 16);

function hold(holdId: string, amount: bigint): NewHold {
  return { ...usd, holdId, amount, kind: HoldKind.TEXT, keyId: "key_a", ref: "req", checkTimeMs };
}

/** Billing behind a network: each call gets the next of `answers`, and the last one repeats. */
function scripted(
  ...answers: ((request: ApplyRequest) => ApplyResponse | Promise<ApplyResponse>)[]
) {
  const clock = manualClock();
  const calls: { operations: number; timeoutMs: number | undefined }[] = [];
  const apply = async (request: unknown, options?: { timeoutMs?: number }) => {
    const { operations } = request as ApplyRequest;
    calls.push({ operations: operations.length, timeoutMs: options?.timeoutMs });
    const answer = answers[Math.min(calls.length, answers.length) - 1];
    return answer?.(request as ApplyRequest) ?? create(ApplyResponseSchema);
  };
  return { clock, calls, holds: holdClientOf({ peers: { billing: { apply } as never }, clock }) };
}

const away = () => {
  throw new RefusalError(ErrorReason.SERVICE_UNAVAILABLE);
};

function allOpen({ operations }: ApplyRequest): ApplyResponse {
  const value = { state: HoldState.OPEN };
  const outcomes = operations.map(() => ({ outcome: { case: "reserve", value } as const }));
  return create(ApplyResponseSchema, { outcomes });
}

/** Waits until a call has been made, then lets the pause after it pass. */
async function pause(world: ReturnType<typeof scripted>, calls: number): Promise<void> {
  await expect.poll(() => world.calls.length).toBe(calls);
  await new Promise((resolve) => setImmediate(resolve));
  await world.clock.advance(1_000);
}

/** Both ways to a real ledger. */
const roads = {
  "over the wire": ({ billing, clock }: World) => holdClientOf({ peers: { billing }, clock }),
  "in one process": ({ billing, clock, service: { holds } }: World) =>
    holdClientOf({ holds, peers: { billing }, clock }),
};
type World = Awaited<ReturnType<typeof billingWorld>>;
type Road = keyof typeof roads;
const bothRoads = Object.keys(roads) as Road[];

test.each(bothRoads)("%s: reserve, settle, release, and refusals as errors", async (road) => {
  await using world = await billingWorld();
  const holds = roads[road](world);
  await world.operator.grant({ ...usd, amount: 100n, operationId: "g" });
  const [first, second, third] = await Promise.allSettled([
    holds.reserve(hold("hold_aaa", 60n)),
    holds.reserve(hold("hold_bbb", 41n)),
    holds.reserve({
      ...hold("hold_ccc", 40n),
      keyLimit: { usdMicros: 99n, reset: KeyLimitReset.MONTHLY },
    }),
  ]);
  expect(first).toMatchObject({ value: { state: HoldState.OPEN, held: 60n } });
  expect(second).toMatchObject({
    reason: {
      name: "RefusalError",
      reason: ErrorReason.INSUFFICIENT_BALANCE,
      metadata: { required: "41", spendable: "40" },
    },
  });
  expect(third).toMatchObject({ reason: { reason: ErrorReason.KEY_LIMIT_EXCEEDED } });
  const settle = { ...usd, holdId: "hold_aaa", amount: 7n };
  const settled = { state: HoldState.SETTLED, chargedAmount: 7n };
  expect(await holds.settle(settle)).toMatchObject({ ...settled, replayed: false });
  expect(await holds.release(settle)).toMatchObject({ ...settled, replayed: true });
  await expect(holds.release({ ...usd, holdId: "hold_zzz" })).rejects.toMatchObject({
    reason: ErrorReason.HOLD_NOT_FOUND,
  });
});

test("calls of one turn travel together, 256 in a message", async () => {
  const { holds, calls } = scripted(allOpen);
  await Promise.all(Array.from({ length: 600 }, (_, i) => holds.reserve(hold(`hold_${i}xx`, 1n))));
  expect(calls.map(({ operations }) => operations)).toEqual([256, 256, 88]);
  await holds.reserve(hold("hold_aaa", 1n));
  expect(calls).toHaveLength(4);
});

test("an unavailable billing is tried again with the same operation", async () => {
  const seen: string[] = [];
  const watch = (request: ApplyRequest) => {
    const operation = request.operations[0]?.operation;
    if (operation?.case === "reserve") seen.push(operation.value.holdId);
  };
  const world = scripted(
    (request) => {
      watch(request);
      return away();
    },
    (request) => {
      watch(request);
      return allOpen(request);
    },
  );
  const reserved = world.holds.reserve(hold("hold_aaa", 1n));
  await pause(world, 1);
  expect(await reserved).toMatchObject({ state: HoldState.OPEN });
  expect(seen).toEqual(["hold_aaa", "hold_aaa"]);
});

test("one that was refused as unavailable is tried again alone", async () => {
  const value = { reason: ErrorReason.SERVICE_UNAVAILABLE, message: "", metadata: {} };
  const world = scripted((request) => {
    const { outcomes } = allOpen(request);
    const refused = { outcome: { case: "refusal", value } } as Outcome;
    return create(ApplyResponseSchema, { outcomes: [refused, ...outcomes.slice(1)] });
  }, allOpen);
  const first = world.holds.reserve(hold("hold_aaa", 1n));
  await world.holds.reserve(hold("hold_bbb", 1n));
  await pause(world, 1);
  await first;
  expect(world.calls.map(({ operations }) => operations)).toEqual([2, 1]);
});

test("a billing that stays away is given up after four attempts", async () => {
  const world = scripted(away);
  const reserved = world.holds.reserve(hold("hold_aaa", 1n));
  const refused = expect(reserved).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
  });
  for (let call = 1; call <= 3; call++) await pause(world, call);
  await refused;
  expect(world.calls).toHaveLength(4);
});

test("a caller's time is not exceeded, and bounds each attempt", async () => {
  const world = scripted(away);
  const settle = { ...usd, holdId: "hold_aaa", amount: 1n };
  const settled = world.holds.settle(settle, { timeoutMs: 120 });
  await expect(settled).rejects.toMatchObject({ reason: ErrorReason.SERVICE_UNAVAILABLE });
  expect(world.calls).toEqual([{ operations: 1, timeoutMs: 120 }]);
});

test("other refusals are final, and an answer to something else is a fault", async () => {
  const broken = scripted(() => {
    throw new RefusalError(ErrorReason.INTERNAL_ERROR);
  });
  const internal = { reason: ErrorReason.INTERNAL_ERROR };
  await expect(broken.holds.reserve(hold("hold_aaa", 1n))).rejects.toMatchObject(internal);
  expect(broken.calls).toHaveLength(1);
  const confused = scripted(allOpen);
  const release = { ...usd, holdId: "hold_aaa" };
  await expect(confused.holds.release(release)).rejects.toMatchObject(internal);
  const silent = scripted(() => create(ApplyResponseSchema));
  await expect(silent.holds.reserve(hold("hold_aaa", 1n))).rejects.toMatchObject(internal);
});

test("a billing that stands still does not fill the memory", async () => {
  const world = scripted(() => new Promise<ApplyResponse>(() => undefined));
  for (let i = 0; i < 16_384; i++) void world.holds.release({ ...usd, holdId: "hold_aaa" });
  await expect(world.holds.release({ ...usd, holdId: "hold_aaa" })).rejects.toMatchObject({
    reason: ErrorReason.SERVICE_UNAVAILABLE,
  });
});

test("a hold that was refused after a lost attempt cannot be opened by a late copy of it", async () => {
  await using world = await billingWorld();
  const { clock } = world;
  let isLost = true;
  const late: ApplyRequest[] = [];
  const apply = async (request: ApplyRequest) => {
    if (isLost) {
      isLost = false;
      late.push(request);
      return away();
    }
    return world.billing.apply(request);
  };
  const holds = holdClientOf({ peers: { billing: { apply } as never }, clock });
  const opened = holds.open(hold("hold_aaa", 60n));
  const refused = expect(opened).rejects.toMatchObject({
    reason: ErrorReason.INSUFFICIENT_BALANCE,
  });
  await expect.poll(() => late.length).toBe(1);
  await new Promise((resolve) => setImmediate(resolve));
  await clock.advance(1_000);
  await refused;
  await world.operator.grant({ ...usd, amount: 100n, operationId: "g" });
  for (const request of late) {
    const { outcomes } = await world.billing.apply(request);
    expect(outcomes[0]?.outcome.case).toBe("refusal");
  }
  const { usdMicros } = await world.billing.getBalance(usd);
  expect(usdMicros).toMatchObject({ spendable: 100n, reserved: 0n });
});

test.each(bothRoads)("%s: a draw charges once, with any amounts in its repeats", async (road) => {
  await using world = await billingWorld();
  const holds = roads[road](world);
  // The refusal of a first attempt needs no further operation.
  await expect(holds.open(hold("hold_bbb", 1n))).rejects.toThrow();
  expect((await world.operator.listEntries(usd)).entries).toEqual([]);
  await world.operator.grant({ ...usd, amount: 100n, operationId: "g" });
  await holds.open(hold("hold_aaa", 60n));
  const draw = {
    ...usd,
    holdId: "hold_aaa",
    keyId: "key_a",
    fromFree: { keyLimit: { usdMicros: 9n, reset: KeyLimitReset.MONTHLY } },
  };
  expect(await holds.draw({ ...draw, amount: 70n })).toBe(60n);
  expect(await holds.draw({ ...draw, amount: 7n })).toBe(60n);
  expect((await holds.settle({ ...draw, amount: 7n })).chargedAmount).toBe(60n);
  // Without a hold, from the free balance: within the key's limit, all of it or nothing, and finally.
  expect(await holds.draw({ ...draw, holdId: "hold_ccc", amount: 1n })).toBe(0n);
  const unlimited = { ...draw, fromFree: { keyLimit: undefined } };
  expect(await holds.draw({ ...unlimited, holdId: "hold_ccc", amount: 1n })).toBe(0n);
  expect(await holds.draw({ ...unlimited, holdId: "hold_ddd", amount: 41n })).toBe(0n);
  expect(await holds.draw({ ...unlimited, holdId: "hold_eee", amount: 40n })).toBe(40n);
  const { usdMicros } = await world.billing.getBalance(usd);
  expect(usdMicros).toMatchObject({ spendable: 0n, reserved: 0n, spent: 100n });
});

const long = { model: "m".repeat(9_000) };
const strange: Record<string, (holds: HoldClient) => Promise<unknown>> = {
  "a hold's id": (holds) => holds.reserve(hold("NO", 1n)),
  "an account's id": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), accountId: "?" }),
  "a unit": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), unit: Unit.UNSPECIFIED }),
  "an amount": (holds) => holds.reserve(hold("hold_aaa", -1n)),
  "a kind": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), kind: HoldKind.UNSPECIFIED }),
  "a key": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), keyId: "" }),
  "a name": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), ref: "a\nb" }),
  "a check time": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), checkTimeMs: -1 }),
  "a least amount": (holds) => holds.reserve({ ...hold("hold_aaa", 1n), least: 2n }),
  "a limit": (holds) =>
    holds.reserve({
      ...hold("hold_aaa", 1n),
      keyLimit: { usdMicros: -1n, reset: KeyLimitReset.DAILY },
    }),
  "a period": (holds) =>
    holds.reserve({
      ...hold("hold_aaa", 1n),
      keyLimit: { usdMicros: 1n, reset: 99 as KeyLimitReset },
    }),
  "a long record": (holds) =>
    holds.settle({ ...usd, holdId: "hold_aaa", amount: 1n, record: long }),
  "too little money": (holds) => holds.reserve(hold("hold_aaa", 1_000n)),
  "no hold": (holds) => holds.release({ ...usd, holdId: "hold_zzz" }),
  "a charge of another amount than money": (holds) =>
    holds.draw({ ...usd, holdId: "hold_aaa", amount: -1n, keyId: "key_a" }),
};
test.each(Object.keys(strange))("both ways refuse alike: %s", async (name) => {
  await using world = await billingWorld();
  await world.operator.grant({ ...usd, amount: 100n, operationId: "g" });
  const refusals = bothRoads.map((road) =>
    strange[name]?.(roads[road](world)).then(
      () => "done",
      ({ reason, message, metadata }: RefusalError) => ({ reason, message, metadata }),
    ),
  );
  const [wire, local] = await Promise.all(refusals);
  expect(local).toEqual(wire);
  expect(local).toMatchObject({ reason: expect.any(Number) });
});

test("both ways write the same record", async () => {
  await using world = await billingWorld();
  await world.operator.grant({ ...usd, amount: 100n, operationId: "g" });
  const records = [
    { model: "chat", operation: "responses", status: "completed", inputTokens: 3 },
    { model: "img", images: 2, startMs: 5, firstOutputMs: 1_001, endMs: 9_000, requestId: "req" },
  ];
  for (const [i, record] of records.entries()) {
    for (const [j, road] of bothRoads.entries()) {
      const drawn = { ...usd, holdId: `hold_${i}_${j}aa`, amount: 1n, keyId: "key_a", record };
      await roads[road](world).draw({ ...drawn, fromFree: { keyLimit: undefined } });
    }
  }
  const { entries } = await world.operator.listEntries(usd);
  const [second, secondToo, first, firstToo] = entries.map(({ record }) => record);
  expect(second).toMatchObject({
    ...{ model: "img", images: 2n, requestId: "req" },
    startTime: timestampFromMs(5),
    firstOutputTime: timestampFromMs(1_001),
    endTime: timestampFromMs(9_000),
  });
  expect(secondToo).toEqual(second);
  expect(first).toMatchObject({ ...records[0], inputTokens: 3n });
  expect(firstToo).toEqual(first);
});
