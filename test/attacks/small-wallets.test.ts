import { afterAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { until } from "../support/until.ts";

/** A token of output costs 4 micros. The model's maximum costs 65,536, the least bound 4,096. */
const roomy = { maxInputTokens: 128_000, maxOutputTokens: 16_384 };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("roomy", { ...roomy, upstreamModel: "up-model" }),
      chat("roomy-legacy", { ...roomy, upstream: "legacy" }),
      chat("short", { maxOutputTokens: 500 }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const messages = [{ role: "user", content: "Hi" }];
const body = { model: "roomy", input: "Hi" };
const routes = [
  ["/responses", body, "max_output_tokens"],
  ["/chat/completions", { model: "roomy", messages }, "max_output_tokens"],
  ["/chat/completions", { model: "roomy-legacy", messages }, "max_tokens"],
] as const;
const limited = async (monthlyUsdMicrosLimit: bigint) =>
  world.withKey(await world.caller(), { monthlyUsdMicrosLimit });
const poor = (usdMicros: bigint) => world.caller({ usdMicros });
const payers: [who: string, make: (micros: bigint) => Promise<Caller>][] = [
  ["a key", limited],
  ["a wallet", poor],
];

describe.each(payers)("%s of 3 cents", (_, make) => {
  test.for(routes)("gets an answer of %s within what it has", async ([path, asked, name]) => {
    const payer = await make(30_000n);
    const seen = world.play();
    expect((await payer.post(path, asked)).status).toBe(200);
    expect(seen).toHaveLength(1);
    const told = seen[0]?.body[name];
    expect(told).toBeGreaterThan(6_000);
    expect(told).toBeLessThan(7_500);
  });

  test("a stream, whose hold is no more than that", async () => {
    const payer = await make(30_000n);
    const seen = world.play({ kind: "ok", usage: null, break: { how: "hang", after: 1 } });
    const stream = await payer.open("/responses", body);
    expect(stream.status).toBe(200);
    const { reserved } = await payer.balance();
    expect(reserved).toBe(30_000);
    expect(seen[0]?.body.max_output_tokens).toBeGreaterThan(6_000);
    stream.leave();
    await until("the settlement", async () => (await payer.balance()).reserved === 0);
  });

  test("the built-in model that everybody begins with answers", async () => {
    const payer = await make(30_000n);
    const asked = await payer.post("/responses", { model: "chat-1", input: "Say hello." });
    expect(asked.status).toBe(200);
  });
});

test("who can pay for the model's maximum has upstream told of no bound", async () => {
  const rich = await world.caller();
  const seen = world.play();
  for (const [path, asked] of routes) expect((await rich.post(path, asked)).status).toBe(200);
  for (const { body: sent } of seen) {
    expect(sent).not.toHaveProperty("max_output_tokens");
    expect(sent).not.toHaveProperty("max_tokens");
  }
});

const chatBounds = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;
const boundsOf = routes.flatMap(([path, asked]) => {
  const names = path === "/chat/completions" ? chatBounds : (["max_output_tokens"] as const);
  return names.map((name) => [path, asked.model, name, asked] as const);
});
test.each(boundsOf)(
  "%s of %s: the bound that a refusal names is taken as %s, and one more is not",
  async (path, _, name, asked) => {
    for (const wallet of [700n, 1_501n, 3_002n, 3_003n]) {
      const payer = await poor(wallet);
      world.play();
      const refused = await payer.post(path, asked);
      expect(refused.status).toBe(402);
      const { maxOutputTokens } = refused.json.error;
      expect(maxOutputTokens).toBeGreaterThan(0);
      const over = await payer.post(path, { ...asked, [name]: maxOutputTokens + 1 });
      expect(over.status).toBe(402);
      expect(over.json.error).toMatchObject({ maxOutputTokens });
      const taken = await payer.post(path, { ...asked, [name]: maxOutputTokens });
      expect(taken.status).toBe(200);
    }
  },
);

describe.each(payers)("%s that cannot pay for 1,024 tokens", (who, make) => {
  const refusal =
    who === "a key"
      ? "403 permission_error key_limit_exceeded null"
      : "402 insufficient_quota insufficient_balance null";

  test("is told what it would need, what there is, and which bound would do", async () => {
    const payer = await make(3_000n);
    world.play();
    const asked = await payer.post("/responses", body);
    expect(refusalOf(asked)).toBe(refusal);
    const { requiredUsdMicros, spendableUsdMicros, maxOutputTokens } = asked.json.error;
    expect(requiredUsdMicros).toBeGreaterThan(4_096);
    expect(requiredUsdMicros).toBeLessThan(5_500);
    expect(spendableUsdMicros).toBe(3_000);
    expect(maxOutputTokens).toBeGreaterThan(100);
    const bounded = (max_output_tokens: number) =>
      payer.post("/responses", { ...body, max_output_tokens });
    const over = await bounded(maxOutputTokens + 1);
    expect(refusalOf(over)).toBe(refusal);
    expect(over.json.error).toMatchObject({ spendableUsdMicros, maxOutputTokens });
    expect(over.json.error.requiredUsdMicros).toBeGreaterThan(3_000);
    expect(over.json.error.requiredUsdMicros).toBeLessThanOrEqual(3_004);
    expect(world.upstream.requests).toHaveLength(0);
    expect((await bounded(maxOutputTokens)).status).toBe(200);
    expect(world.upstream.requests[0]?.body.max_output_tokens).toBe(maxOutputTokens);
  });

  test("and where not even the input is covered, that none would", async () => {
    const payer = await make(50n);
    for (const [path, asked] of routes) {
      const answer = await payer.post(path, asked);
      expect(refusalOf(answer)).toBe(refusal);
      expect(answer.json.error).toMatchObject({ spendableUsdMicros: 50, maxOutputTokens: 0 });
    }
  });
});

test("a bound that the caller chose is never lowered", async () => {
  const payer = await poor(30_000n);
  world.play();
  const asked = await payer.post("/responses", { ...body, max_output_tokens: 16_384 });
  expect(refusalOf(asked)).toBe("402 insufficient_quota insufficient_balance null");
  expect(asked.json.error.requiredUsdMicros).toBeGreaterThan(65_536);
});

test("a model of fewer than 1,024 tokens is all or nothing", async () => {
  const payer = await poor(2_000n);
  world.play();
  const asked = await payer.post("/responses", { model: "short", input: "Hi" });
  expect(asked.status).toBe(402);
  expect(asked.json.error.requiredUsdMicros).toBeGreaterThan(2_000);
});

test("many at once hold no more than there is, and the rest is refused", async () => {
  const payer = await poor(80_000n);
  // No answer comes before all requests were accepted or refused. The unused part of a hold would make room for another request.
  const judged = Promise.withResolvers<void>();
  world.play({ kind: "ok", firstByteAfter: judged.promise });
  let answered = 0;
  const asked = Array.from({ length: 20 }, async () => {
    const answer = await payer.post("/responses", body);
    answered++;
    return answer;
  });
  await world.upstream.request(2);
  const { reserved, spendable } = await payer.balance();
  expect(reserved + spendable).toBe(80_000);
  expect(spendable).toBeGreaterThanOrEqual(0);
  await until("the refusals", () => answered >= 18);
  judged.resolve();
  const answers = await Promise.all(asked);
  const [taken, refused] = [200, 402].map((code) => answers.filter((a) => a.status === code));
  expect([taken?.length, refused?.length]).toEqual([2, 18]);
  const told = world.upstream.requests.map(({ body: sent }) => sent.max_output_tokens);
  expect(told.filter((bound) => bound === undefined)).toHaveLength(1);
  expect(await payer.settled()).toMatchObject({ available: 80_000 - 60, reserved: 0 });
});

test("speech and jobs name what they need and what there is", async () => {
  const payer = await world.caller({ usdMicros: 5n, credits: 7n });
  const speech = { model: "speech-1", voice: "alloy", input: "Hello there." };
  const spoken = await payer.post("/speech/generations", speech);
  expect(spoken.json.error).toMatchObject({
    code: "insufficient_balance",
    spendableUsdMicros: 5,
    requiredUsdMicros: expect.any(Number),
  });
  expect(spoken.json.error).not.toHaveProperty("maxOutputTokens");
  const limitedKey = await limited(1n);
  expect((await limitedKey.post("/speech/generations", speech)).json.error).toMatchObject({
    code: "key_limit_exceeded",
    spendableUsdMicros: 1,
    requiredUsdMicros: spoken.json.error.requiredUsdMicros,
  });
  for (const [path, asked, requiredCredits] of [
    ["/images/generations", { model: "image-1", prompt: "A pier", n: 2 }, 10],
    ["/videos/generations", { model: "svc-video-1-5", prompt: "A pier" }, 45],
    ["/music/generations", { model: "music-1", mode: "instrumental", title: "Pier" }, 20],
  ] as const) {
    const refused = await payer.post(path, asked, { idempotencyKey: path });
    expect(refusalOf(refused)).toBe("402 insufficient_quota insufficient_credits null");
    expect(refused.json.error).toMatchObject({ requiredCredits, spendableCredits: 7 });
  }
});
