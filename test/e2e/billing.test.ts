import { afterAll, describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();

const integers = [
  "availableUsdMicros",
  "reservedUsdMicros",
  "spendableUsdMicros",
  "monthSpendUsdMicros",
] as const;

test("GET /billing shows both wallets, in integers", async () => {
  const { status, json } = await caller.get("/billing");
  expect(status).toBe(200);
  for (const name of integers) expect(Number.isSafeInteger(json[name])).toBe(true);
  expect(json.spendableUsdMicros).toBe(json.availableUsdMicros - json.reservedUsdMicros);
  const { available, reserved, spendable, monthSpent } = json.credits;
  for (const value of [available, reserved, spendable, monthSpent]) {
    expect(Number.isSafeInteger(value)).toBe(true);
  }
  expect(spendable).toBe(available - reserved);
});

describe("the balance", () => {
  ownWorldOnly();
  const grant = (accountId: string, amount: bigint, operationId: string, unit = Unit.USD_MICROS) =>
    world.admin.billing.grant({ accountId, unit, amount, operationId });

  test("of a new account is what it was given, once for each operation", async () => {
    const owner = await world.caller({ usdMicros: 5n, credits: 7n });
    await grant(owner.accountId, 10n, "more");
    await grant(owner.accountId, 10n, "more");
    const { json } = await owner.get("/billing");
    expect(json).toMatchObject({
      availableUsdMicros: 15,
      reservedUsdMicros: 0,
      spendableUsdMicros: 15,
      monthSpendUsdMicros: 0,
      credits: { available: 7, reserved: 0, spendable: 7, monthSpent: 0 },
    });
  });

  test("in dollars is what was paid in, and what was spent", async () => {
    const owner = await world.caller({ usdMicros: 2_000_001n });
    world.play();
    await owner.post("/responses", { model: "scripted", input: "Hi" });
    const { status, json } = await owner.get("/credits");
    expect(status).toBe(200);
    expect(json).toEqual({ data: { total_credits: 2.000_001, total_usage: 0.000_03 } });
  });

  test("is the account's, whichever key asks", async () => {
    const owner = await world.caller();
    const second = await world.withKey(owner, {});
    world.play();
    await second.post("/responses", { model: "scripted", input: "Hi" });
    expect(await owner.balance()).toEqual(await second.balance());
    expect((await owner.balance()).monthSpend).toBe(30);
  });

  test("is another account's business only there", async () => {
    const [one, two] = [await world.caller(), await world.caller()];
    world.play();
    await one.post("/responses", { model: "scripted", input: "Hi" });
    expect((await two.balance()).available).toBe(10_000_000);
  });

  test("agrees with the answer at once: settled before the terminal event", async () => {
    const owner = await world.caller();
    world.play();
    for (let asked = 1; asked <= 5; asked++) {
      const stream = await owner.open("/responses", { model: "scripted", input: "Hi" });
      await stream.until(({ name }) => name === "response.completed");
      expect((await owner.balance()).available).toBe(10_000_000 - 30 * asked);
      await stream.rest();
    }
  });

  test("counts a month's spending from the first day of the month in UTC", async () => {
    const owner = await world.caller();
    world.play();
    await owner.post("/responses", { model: "scripted", input: "Hi" });
    expect((await owner.balance()).monthSpend).toBe(30);
    const now = new Date();
    const nextMonth = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1, 1);
    await world.later(nextMonth - now.getTime() + 1_000);
    expect(await owner.balance()).toMatchObject({ monthSpend: 0, available: 9_999_970 });
    await owner.post("/responses", { model: "scripted", input: "Hi" });
    expect(await owner.balance()).toMatchObject({ monthSpend: 30, available: 9_999_940 });
  });
});
