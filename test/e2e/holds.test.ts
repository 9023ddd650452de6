import { afterAll, describe, expect, test } from "vitest";
import { Unit } from "#proto/genmesh/billing/v1/billing_service_pb.ts";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { pricing } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const opening = 10_000_000;

/** What is held for a request while upstream thinks about it. */
async function holdOf(path: string, body: object): Promise<number> {
  const payer = await world.caller();
  world.play({ kind: "hang" });
  const leaving = new AbortController();
  const asked = payer.post(path, body, { signal: leaving.signal }).catch(() => {});
  await world.upstream.request(1);
  const { available, reserved, spendable, monthSpend } = await payer.balance();
  expect({ available, spendable, monthSpend }).toEqual({
    available: opening,
    spendable: opening - reserved,
    monthSpend: 0,
  });
  leaving.abort();
  await asked;
  await until("the hold's end", async () => (await payer.balance()).reserved === 0);
  return reserved;
}

describe("a hold", () => {
  const body = { model: "scripted", input: "Hi" };
  const ask = (fields: object) => holdOf("/responses", { ...body, ...fields });

  test("covers the output that was asked for, at most the model's", async () => {
    const whole = await ask({});
    // 1,000 tokens at 4 micros, and the input's bound.
    expect(whole).toBeGreaterThan(4_000);
    expect(whole).toBeLessThan(6_000);
    const most = await ask({ max_output_tokens: 1_000 });
    // The field itself is a few bytes of input to the bound.
    expect(Math.abs(most - whole)).toBeLessThan(100);
    expect(await ask({ max_output_tokens: 10 })).toBe(most - 990 * 4);
    expect(await ask({ max_output_tokens: 50_000 })).toBe(most);
  });

  test("covers input that costs more tokens than it seems", async () => {
    const whole = await ask({});
    // Each of these characters is several tokens in common vocabularies.
    const odd = "𓂀𒐫🜲";
    const input = odd.repeat(50);
    expect((await ask({ input })) - whole).toBeGreaterThanOrEqual(Buffer.byteLength(input) - 2);
  });

  test("covers a hosted tool's whole input", async () => {
    expect(await ask({ tools: [{ type: "web_search" }] })).toBe(20_000 + 4_000);
    expect(await ask({ tools: [{ type: "function", name: "f" }] })).toBeLessThan(6_000);
    const chat = { model: "legacy", messages: [{ role: "user", content: "Hi" }] };
    expect(await holdOf("/chat/completions", { ...chat, web_search_options: {} })).toBe(24_000);
  });

  test("covers images at their full detail", async () => {
    const { default: sharp } = await import("sharp");
    const create = { width: 2048, height: 1024, channels: 3, background: "#456" } as const;
    const bytes = await sharp({ create }).png().toBuffer();
    const image_url = `data:image/png;base64,${bytes.toString("base64")}`;
    const input = (detail: string) => [
      { role: "user", content: [{ type: "input_image", image_url, detail }] },
    ];
    const [low, high] = [await ask({ input: input("low") }), await ask({ input: input("high") })];
    // 64 by 32 patches; the word for the detail is one byte longer.
    expect(high).toBe(low + 1);
    expect(low - (await ask({}))).toBeGreaterThanOrEqual(2_048);
    expect(low - (await ask({}))).toBeLessThan(2_448);
  });

  test("is refused whole where the wallet lacks one micro, and taken where it does not", async () => {
    const whole = await ask({});
    const seen = world.play();
    const short = await world.caller({ usdMicros: BigInt(whole - 1) });
    const refused = await short.post("/responses", body);
    expect(refusalOf(refused)).toBe("402 insufficient_quota insufficient_balance null");
    expect(seen).toHaveLength(0);
    const exact = await world.caller({ usdMicros: BigInt(whole) });
    expect((await exact.post("/responses", body)).status).toBe(200);
    expect(await exact.balance()).toMatchObject({ available: whole - 30, reserved: 0 });
  });
});

describe("many at once on a small wallet", () => {
  test.for([false, true])("never overdraw it (stream: %s)", async (stream) => {
    const body = { model: "scripted", input: "Hi", stream };
    const whole = await holdOf("/responses", body);
    const payer = await world.caller({ usdMicros: BigInt(5 * whole + whole - 1) });
    const gate = Promise.withResolvers<void>();
    world.play((seen) => ({
      kind: "custom",
      handle: async (_seen, response) => {
        await gate.promise;
        response.setHeader("content-type", "application/json");
        const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
        response.end(JSON.stringify({ output: [], usage, asked: seen.connection }));
      },
    }));
    const lowest = watchSpendable(payer);
    const asked = Array.from({ length: 60 }, () => payer.post("/responses", body));
    const refusedOnes = await until("the refusals", async () => {
      const settled = await Promise.all(
        asked.map((one) => Promise.race([one, Promise.resolve(undefined)])),
      );
      const refused = settled.filter((one) => one?.status === 402);
      return refused.length === 55 ? refused : undefined;
    });
    expect(refusedOnes.every((one) => one?.json.error.code === "insufficient_balance")).toBe(true);
    expect((await payer.balance()).reserved).toBe(5 * whole);
    expect(world.upstream.requests).toHaveLength(5);
    gate.resolve();
    const answers = await Promise.all(asked);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5);
    expect(await payer.balance()).toMatchObject({
      available: 6 * whole - 1 - 5 * 30,
      reserved: 0,
      monthSpend: 150,
    });
    expect(await lowest.stop()).toBeGreaterThanOrEqual(0);
  });

  test("spend it to the last micro, and not beyond", async () => {
    const body = { model: "scripted", input: "Hi", max_output_tokens: 1 };
    const whole = await holdOf("/responses", body);
    const payer = await world.caller({ usdMicros: BigInt(whole * 3) });
    // Upstream reports more than was held: each is charged its whole hold.
    world.play({ kind: "ok", usage: { input_tokens: whole, output_tokens: 1, total_tokens: 0 } });
    const asked = Array.from({ length: 40 }, () => payer.post("/responses", body));
    const answers = await Promise.all(asked);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(3);
    expect(answers.filter(({ status }) => status === 402)).toHaveLength(37);
    expect(await payer.balance()).toMatchObject({ available: 0, reserved: 0, spendable: 0 });
  });
});

test("the price in force at acceptance is the price charged", async () => {
  const payer = await world.caller();
  const gate = Promise.withResolvers<void>();
  world.play({
    kind: "custom",
    handle: async (_seen, response) => {
      await gate.promise;
      response.setHeader("content-type", "application/json");
      const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
      response.end(JSON.stringify({ output: [], usage }));
    },
  });
  const body = { model: "scripted", input: "Hi" };
  const asked = payer.post("/responses", body);
  await world.upstream.request(1);
  await world.writeCatalog((usual) => ({
    ...usual,
    models: usual.models.map((one) =>
      one.id === "scripted"
        ? { ...one, pricing: { ...pricing, outputUsdMicrosPerMillionTokens: 40_000_000 } }
        : one,
    ),
  }));
  const output = async () =>
    (await payer.get("/models/scripted")).json.pricing.outputUsdMicrosPerMillionTokens;
  await until("the new price", async () => (await output()) === 40_000_000);
  gate.resolve();
  expect((await asked).status).toBe(200);
  expect((await payer.balance()).available).toBe(opening - 30);
  await payer.post("/responses", body);
  expect((await payer.balance()).available).toBe(opening - 30 - 210);
});

test("a dollar wallet does not pay in credits, nor the other way round", async () => {
  const rich = await world.caller({ usdMicros: 0n, credits: 1_000_000n });
  world.play();
  const asked = await rich.post("/responses", { model: "scripted", input: "Hi" });
  expect(refusalOf(asked)).toBe("402 insufficient_quota insufficient_balance null");
  await world.admin.billing.grant({
    accountId: rich.accountId,
    unit: Unit.USD_MICROS,
    amount: 1_000_000n,
    operationId: "later",
  });
  expect((await rich.post("/responses", { model: "scripted", input: "Hi" })).status).toBe(200);
  const { json } = await rich.get("/billing");
  expect(json.credits).toMatchObject({ available: 1_000_000, reserved: 0 });
});

/** Looks at the balance all the time, and remembers the lowest. */
function watchSpendable(payer: Caller): { stop(): Promise<number> } {
  let isOver = false;
  let lowest = Number.POSITIVE_INFINITY;
  const watching = (async () => {
    while (!isOver) lowest = Math.min(lowest, (await payer.balance()).spendable);
  })();
  return {
    async stop() {
      isOver = true;
      await watching;
      return lowest;
    },
  };
}
