import { afterAll, describe, expect, test } from "vitest";
import { type ScriptedUsage, strangeUsages } from "../support/scripted-behaviours.ts";
import type { Caller } from "./caller.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const opening = 10_000_000;
const messages = [{ role: "user", content: "Hi" }];
/** All ways to ask for text. */
const ways: [name: string, ask: (payer: Caller, fields?: object) => Promise<unknown>][] = [
  ["a response", (payer) => payer.post("/responses", { model: "scripted", input: "Hi" })],
  ["a stream", (payer) => payer.stream("/responses", { model: "scripted", input: "Hi" })],
  ["compaction", (payer) => payer.post("/responses/compact", { model: "scripted", input: "Hi" })],
  ["chat, translated", (payer) => payer.post("/chat/completions", { model: "scripted", messages })],
  [
    "a chat stream, translated",
    (payer) => payer.stream("/chat/completions", { model: "scripted", messages }),
  ],
  ["chat, native", (payer) => payer.post("/chat/completions", { model: "legacy", messages })],
  [
    "a chat stream, native",
    (payer) => payer.stream("/chat/completions", { model: "legacy", messages }),
  ],
];

const usageOf = (input: number, output: number, cached = 0): ScriptedUsage => ({
  input_tokens: input,
  output_tokens: output,
  total_tokens: input + output,
  input_tokens_details: { cached_tokens: cached },
});

describe.for(ways)("reported usage is charged: %s", ([, ask]) => {
  // A token costs 1 micro in, 0.25 cached, 4 out.
  test.for<[usage: ScriptedUsage, micros: number]>([
    [usageOf(10, 5), 30],
    [usageOf(10, 5, 4), 6 + 1 + 20],
    [usageOf(10, 5, 10), 3 + 20],
    [usageOf(3, 0, 3), 1],
    [usageOf(1, 0), 1],
    [usageOf(0, 0), 0],
  ])("%j", async ([usage, micros]) => {
    const payer = await world.caller();
    world.play({ kind: "ok", usage });
    await ask(payer);
    expect(await payer.balance()).toEqual({
      available: opening - micros,
      reserved: 0,
      spendable: opening - micros,
      monthSpend: micros,
    });
  });

  test("above the bound, but believable: at most the hold", async () => {
    const payer = await world.caller();
    const answered = Promise.withResolvers<void>();
    world.play({ kind: "ok", usage: usageOf(20, 4_000), firstByteAfter: answered.promise });
    const asked = ask(payer);
    await world.upstream.request(1);
    const { reserved: held } = await payer.balance();
    answered.resolve();
    await asked;
    expect(held).toBeGreaterThanOrEqual(4_000);
    expect(held).toBeLessThan(16_000);
    expect(await payer.balance()).toMatchObject({ available: opening - held, reserved: 0 });
  });

  test.for(["negative", "fractional", "cachedAboveInput", "absurd"] as const)(
    "%s usage is not applied: what was counted is charged and shown, and nothing stays held",
    async (strange) => {
      const payer = await world.caller();
      world.play({ kind: "ok", usage: strangeUsages[strange] });
      const answer = JSON.stringify(await ask(payer));
      const balance = await payer.balance();
      const cost = opening - balance.available;
      expect(balance).toEqual({
        available: opening - cost,
        reserved: 0,
        spendable: opening - cost,
        monthSpend: cost,
      });
      // Four tokens of "Hello from upstream." at 4 micros, and the input.
      expect(cost).toBeGreaterThan(16);
      expect(cost).toBeLessThan(100);
      expect(answer).not.toContain("9000000000000000");
      const { accountId } = payer;
      const { reviews } = await world.admin.text.listReviews({ accountId });
      expect(reviews).toMatchObject([{ accountId, chargedUsdMicros: BigInt(cost) }]);
      const { holds } = await world.admin.billing.listHolds({ accountId });
      expect(holds).toEqual([]);
      const errors = world.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 50);
      expect(errors.some((line) => line.accountId === accountId)).toBe(true);
    },
  );
});

test("the caller of a request whose usage is not believed has its answer all the same", async () => {
  const payer = await world.caller();
  world.play({ kind: "ok", usage: strangeUsages.negative });
  const { status, json } = await payer.post("/responses", { model: "scripted", input: "Hi" });
  expect(status).toBe(200);
  expect(json.output[0].content[0].text).toBe("Hello from upstream.");
  expect(json.usage).toMatchObject({ output_tokens: 4, estimated: true });
});
