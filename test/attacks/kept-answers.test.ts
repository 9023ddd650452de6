import { afterAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { requestsUnderWay } from "../support/requests-under-way.ts";
import { until } from "../support/until.ts";

const wordy = { maxInputTokens: 10_000_000, maxOutputTokens: 9_000_000 };
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("wordy", { ...wordy, upstreamModel: "up-model" }),
      chat("wordy-legacy", { ...wordy, upstream: "legacy" }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const opening = 100_000_000;
/** Above the 8 MiB that are kept, in deltas of a quarter MiB. */
const deltas = Array.from({ length: 34 }, () => "sea ".repeat(65_536));
const cost = 30;
const body = { model: "wordy", input: "Hi" };
const messages = [{ role: "user", content: "Hi" }];
const spent = async (payer: Caller) => opening - (await payer.settled()).available;

describe("an answer that is too large to keep", () => {
  test.for([
    ["/responses", body],
    ["/responses", { ...body, stream: true }],
    ["/responses/compact", body],
    ["/chat/completions", { model: "wordy", messages }],
    ["/chat/completions", { model: "wordy", messages, stream: true }],
    ["/chat/completions", { model: "wordy-legacy", messages }],
    ["/chat/completions", { model: "wordy-legacy", messages, stream: true }],
  ] as const)("of %s %j is generated and charged once", async ([path, asked]) => {
    const payer = await world.caller({ usdMicros: BigInt(opening) });
    const isCompact = path.endsWith("compact");
    const seen = world.play({
      kind: "ok",
      ...(isCompact ? { encrypted: deltas.join("") } : { deltas }),
    });
    const ask = (more: object = {}) =>
      payer.post(path, { ...asked, ...more }, { idempotencyKey: "one" });
    const first = await ask();
    expect(first.status).toBe(200);
    expect(first.text.length).toBeGreaterThan(8 * 1024 * 1024);
    expect(await spent(payer)).toBe(cost);
    // The repeat may ask for any form.
    const forms = isCompact ? [{}] : [{}, { stream: true }, { stream: false }];
    for (const form of forms) {
      const again = await ask(form);
      expect(refusalOf(again)).toBe("422 idempotency_error idempotency_answer_not_kept null");
      expect(again.json.error).toMatchObject({
        requestId: first.text.match(/"id":"((?:resp_|chatcmpl-)[a-z0-9]+)"/)?.[1],
        costUsdMicros: cost,
      });
      expect(again.headers.get("x-should-retry")).toBe("false");
    }
    const other = await ask({ metadata: { other: "body" } });
    expect(refusalOf(other)).toBe("422 idempotency_error idempotency_key_reused null");
    expect(seen).toHaveLength(1);
    expect(await spent(payer)).toBe(cost);
  });

  test("goes to all who asked for it at once", async () => {
    const payer = await world.caller({ usdMicros: BigInt(opening) });
    // A request that arrives after the end of the answer is refused, because no answer was kept for it.
    const allCame = Promise.withResolvers<void>();
    world.play({ kind: "ok", deltas, firstByteAfter: allCame.promise });
    const ask = () => payer.post("/responses", body, { idempotencyKey: "one" });
    const asked = Promise.all([ask(), ask(), ask()]);
    await world.upstream.request(1);
    await until("all three", async () => (await requestsUnderWay(world.opsUrl)) === 3);
    allCame.resolve();
    const answers = await asked;
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(world.upstream.requests).toHaveLength(1);
    expect((await ask()).status).toBe(422);
    expect(await spent(payer)).toBe(cost);
  });
});

test("a smaller answer is kept, asked for in any form", async () => {
  const payer = await world.caller({ usdMicros: BigInt(opening) });
  world.play({ kind: "ok", deltas: deltas.slice(0, 30) });
  const ask = (stream: boolean) =>
    payer.post("/responses", { ...body, stream }, { idempotencyKey: "one" });
  for (const stream of [true, false, true]) expect((await ask(stream)).status).toBe(200);
  expect(world.upstream.requests).toHaveLength(1);
  expect(await spent(payer)).toBe(cost);
});

describe("metadata, which answers repeat,", () => {
  const refused: [name: string, metadata: unknown, refusal: string][] = [
    ["of a long value", { a: "x".repeat(513) }, "invalid_value metadata.a"],
    ["of megabytes", { a: "x".repeat(7_900_000) }, "invalid_value metadata.a"],
    ["of a long name", { ["n".repeat(65)]: "x" }, "invalid_value metadata"],
    [
      "of 17 pairs",
      Object.fromEntries(Array.from({ length: 17 }, (_, n) => [n, "x"])),
      "invalid_value metadata",
    ],
    ["of a number", { a: 1 }, "invalid_type metadata.a"],
    ["of an object", { a: { b: "x" } }, "invalid_type metadata.a"],
    ["that is an array", ["x"], "invalid_type metadata"],
  ];
  const asked: [path: string, body: object][] = [
    ["/responses", body],
    ["/responses/compact", body],
    ["/chat/completions", { model: "wordy", messages }],
  ];
  test.for(refused)("%s is refused at its path, for nothing", async ([, metadata, refusal]) => {
    const payer = await world.caller({ usdMicros: BigInt(opening) });
    const seen = world.play({ kind: "ok" });
    for (const [path, rest] of asked) {
      const answer = await payer.post(path, { ...rest, metadata }, { idempotencyKey: "one" });
      const [code, param] = refusal.split(" ");
      expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} ${param}`);
    }
    expect(seen).toHaveLength(0);
    expect(await spent(payer)).toBe(0);
  });
  test("passes up to its bounds", async () => {
    const payer = await world.caller({ usdMicros: BigInt(opening) });
    const pairs = Array.from({ length: 16 }, (_, n) => [
      String.fromCharCode(97 + n).repeat(64),
      "🌊".repeat(512),
    ]);
    const metadata = Object.fromEntries(pairs);
    for (const [path, rest] of asked) {
      const seen = world.play({ kind: "ok" });
      expect((await payer.post(path, { ...rest, metadata })).status).toBe(200);
      expect(seen[0]?.body.metadata).toEqual(metadata);
      expect((await payer.post(path, { ...rest, metadata: null })).status).toBe(200);
    }
  });
});
