import OpenAI from "openai";
import { afterAll, describe, expect, test } from "vitest";
import { type Caller, refusalOf } from "./caller.ts";
import type { CatalogObject } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ catalog: withEmbeddings });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

/** Embedding models, one micro a token. */
function withEmbeddings(usual: CatalogObject): CatalogObject {
  const embedding = {
    kind: "embedding",
    upstream: "main",
    maxInputTokens: 1_000,
    maxInputs: 3,
    pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
  };
  const models = [
    { ...embedding, id: "vectors", upstreamModel: "up-vectors" },
    { ...embedding, id: "vectors-legacy", upstream: "legacy" },
    { ...embedding, id: "vectors-peer", upstream: "peer" },
    { ...embedding, id: "vectors-refusing-the-field" },
    { ...embedding, id: "vectors-refusing-without-a-word" },
    { ...embedding, id: "vectors-backed", upstream: "nowhere", fallbackUpstreams: ["backup"] },
  ];
  return { ...usual, models: [...usual.models, ...models] };
}

const path = "/embeddings";
const vector = [0.25, -1, 3];
const base64 = Buffer.from(new Float32Array(vector).buffer).toString("base64");
/** The upstream's answer to `count` inputs, the last one first, with extra fields. */
const answerOf = (count: number, usage: object | null = { prompt_tokens: 7, total_tokens: 7 }) => ({
  kind: "json" as const,
  body: {
    object: "list",
    model: "up-vectors-0613",
    data: Array.from({ length: count }, (_, index) => ({
      ...{ object: "embedding", index, embedding: vector, secret: "OPERATOR" },
    })).reverse(),
    ...(usage && { usage: { ...usage, cost: 12 } }),
    provider: "OPERATOR",
  },
});
const body = { model: "vectors", input: "Hi" };
const charged = async (payer: Caller) => (await payer.settled()).monthSpend;

describe("the official SDK", () => {
  test("has numbers, from base64 and as they are", async () => {
    const payer = await world.caller();
    const client = new OpenAI({ baseURL: world.baseUrl, apiKey: payer.key, maxRetries: 0 });
    const seen = world.play({
      ...{ kind: "json" },
      body: {
        data: [{ index: 0, embedding: base64 }],
        usage: { prompt_tokens: 2, total_tokens: 2 },
      },
    });
    const { data, usage, model } = await client.embeddings.create(body);
    expect([...(data[0]?.embedding ?? [])]).toEqual(vector);
    expect([usage.prompt_tokens, usage.total_tokens, model]).toEqual([2, 2, "vectors"]);
    expect(seen[0]?.path).toBe("/v1/embeddings");
    world.play(answerOf(2));
    const floats = await client.embeddings.create({
      ...{ model: "vectors", input: ["a", "b"], encoding_format: "float" },
    });
    expect(floats.data.map(({ index, embedding }) => [index, embedding])).toEqual([
      [0, vector],
      [1, vector],
    ]);
    expect(await charged(payer)).toBe(2 + 7);
  });
});

/** The cost in an answer. */
const costOf = (micros: number) => ({ cost: micros / 1e6, costUsdMicros: micros });

describe("what goes up and what comes back", () => {
  test.each(["vectors", "vectors-legacy", "vectors-peer", "vectors-backed"])(
    "%s",
    async (model) => {
      const payer = await world.caller();
      world.play(answerOf(2));
      const asked = { model, input: [[1, 2], "b"], dimensions: 3, echo: true, user: "u" };
      const { status, json, headers } = await payer.post(path, asked);
      expect([status, json]).toEqual([
        200,
        {
          object: "list",
          data: [0, 1].map((index) => ({ object: "embedding", index, embedding: vector })),
          model,
          usage: { prompt_tokens: 7, total_tokens: 7, ...costOf(7) },
        },
      ]);
      expect(headers.get("x-genmesh-ignored-parameters")).toBe("echo");
      const [seen] = [...world.upstream.requests, ...world.backup.requests];
      expect(seen?.body).toEqual({
        ...{ model: model === "vectors" ? "up-vectors" : model },
        ...{ input: [[1, 2], "b"], dimensions: 3, user: "u" },
      });
      expect(await charged(payer)).toBe(7);
    },
  );

  test.each([
    ["a text", "Hello there, you.", 1, 5 + 2],
    ["tokens", [5, 6, 7], 1, 3 + 2],
    ["lists of tokens", [[5, 6, 7], [8]], 2, 4 + 2 * 2],
  ])("without usage it costs our count, two around each, and says so: %s", async (...given) => {
    const [, input, inputs, tokens] = given;
    const payer = await world.caller();
    world.play(answerOf(inputs, null));
    const { json } = await payer.post(path, { ...body, input });
    expect(json.usage).toEqual({
      ...{ prompt_tokens: tokens, total_tokens: tokens, estimated: true },
      ...costOf(tokens),
    });
    expect(await charged(payer)).toBe(tokens);
  });

  test("usage above the bound costs no more than was held", async () => {
    const payer = await world.caller();
    world.play(answerOf(1, { prompt_tokens: 100, total_tokens: 100 }));
    expect((await payer.post(path, body)).status).toBe(200);
    // Two bytes, and the tokens that a model may add around them.
    expect(await charged(payer)).toBe(18);
  });
});

test("a text that its model brings to a plain form is held for as that", async () => {
  const payer = await world.caller();
  // One character of three bytes, for which NFKC gives eighteen.
  const input = "\u{fdfa}".repeat(50);
  world.play(answerOf(1, { prompt_tokens: 900, total_tokens: 900 }));
  expect((await payer.post(path, { ...body, input })).status).toBe(200);
  expect(await charged(payer)).toBe(900);
});

describe("money", () => {
  test("is held before anything is sent", async () => {
    const poor = await world.caller({ usdMicros: 17n });
    const seen = world.play(answerOf(1));
    const refused = await poor.post(path, body);
    expect(refusalOf(refused)).toBe("402 insufficient_quota insufficient_balance null");
    expect(refused.json.error).toMatchObject({ requiredUsdMicros: 18, spendableUsdMicros: 17 });
    expect(seen).toHaveLength(0);
    const able = await world.caller({ usdMicros: 18n });
    expect((await able.post(path, body)).status).toBe(200);
    expect(await charged(able)).toBe(7);
  });

  test("is charged once for a key, whose answer is given again", async () => {
    const payer = await world.caller();
    const seen = world.play(answerOf(1));
    const post = (more = {}) => payer.post(path, { ...body, ...more }, { idempotencyKey: "one" });
    const first = await post();
    const all = await Promise.all(Array.from({ length: 10 }, () => post()));
    expect(new Set([first, ...all].map(({ text }) => text)).size).toBe(1);
    expect(all.every(({ headers }) => headers.get("idempotency-replayed") === "true")).toBe(true);
    expect(refusalOf(await post({ input: "other" }))).toContain("422 idempotency_error");
    // Keys of another route are separate.
    const other = await payer.post(
      "/responses",
      { model: "chat-1", input: "say hello" },
      {
        idempotencyKey: "one",
      },
    );
    expect(other.headers.get("idempotency-replayed")).toBeNull();
    expect(seen).toHaveLength(1);
    expect(await charged(payer)).toBeGreaterThanOrEqual(7);
  });

  test.each([
    ["an error", { kind: "status", status: 500 }, "502 server_error model_request_failed null"],
    ["no route", { kind: "status", status: 404 }, "model_not_responses_capable model"],
    ["no connection", { kind: "drop" }, "502 server_error model_request_failed null"],
    ["too few", answerOf(0, null), "502 server_error model_request_failed null"],
    ["too many", answerOf(2, null), "502 server_error model_request_failed null"],
    ["no JSON", { kind: "garbage" }, "502 server_error model_request_failed null"],
    [
      "no vector",
      { kind: "json", body: { data: [{ index: 0, embedding: ["x"] }] } },
      "502 server_error model_request_failed null",
    ],
    [
      "a field that is not the model's",
      { kind: "status", status: 400, param: "input" },
      "400 invalid_request_error invalid_value input",
    ],
  ] as const)("is not charged for %s", async (_, behaviour, refusal) => {
    const payer = await world.caller();
    world.play(behaviour);
    expect(refusalOf(await payer.post(path, body))).toContain(refusal);
    expect(await charged(payer)).toBe(0);
  });
});

describe("refused before anything is sent", () => {
  test.each<[object, string]>([
    [{ input: undefined }, "missing_required_parameter input"],
    [{ input: [] }, "missing_required_parameter input"],
    [{ input: "" }, "invalid_value input"],
    [{ input: 7 }, "invalid_type input"],
    [{ input: ["a", ""] }, "invalid_value input[1]"],
    [{ input: ["a", 7] }, "invalid_type input[1]"],
    [{ input: [1, -2] }, "invalid_type input"],
    [{ input: ["a", "b", "c", "d"] }, "invalid_value input"],
    [{ input: Array(1_001).fill(1) }, "context_length_exceeded input"],
    [{ dimensions: 0 }, "invalid_value dimensions"],
    [{ encoding_format: "hex" }, "invalid_value encoding_format"],
    [{ model: "chat-1" }, "model_not_found model"],
    [{ model: "none" }, "model_not_found model"],
  ])("%j", async (more, refusal) => {
    const payer = await world.caller();
    const seen = world.play(answerOf(1));
    expect(refusalOf(await payer.post(path, { ...body, ...more }))).toContain(refusal);
    expect(seen).toHaveLength(0);
  });

  test("a key without the scope or the model", async () => {
    const payer = await world.caller();
    world.play(answerOf(1));
    const { Scope } = await import("#proto/genmesh/common/v1/access_pb.ts");
    const images = await world.withKey(payer, { scopes: [Scope.IMAGES] });
    expect(refusalOf(await images.post(path, body))).toContain("403 permission_error");
    const other = await world.withKey(payer, { allowedModels: ["chat-1"] });
    expect(refusalOf(await other.post(path, body))).toBe(
      "403 permission_error permission_denied model",
    );
    // An embedding model serves no other text operation.
    const chat = await payer.post("/responses", body);
    expect(refusalOf(chat)).toContain("model_not_found");
  });
});

test("the list of models says what an embedding model takes and costs", async () => {
  const payer = await world.caller();
  const { json } = await payer.get("/models/vectors");
  expect(json).toMatchObject({
    ...{ id: "vectors", kind: "embedding", maxInputTokens: 1_000, maxInputs: 3 },
    pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
  });
});

describe("vectors come in the format that was asked for", () => {
  const models = ["vectors", "vectors-legacy", "vectors-peer"];
  /** The upstream's answer, for any format asked. */
  const sent = [
    ["numbers", vector],
    ["base64", base64],
  ] as const;
  const asked = [
    ["base64", { encoding_format: "base64" }, base64],
    ["float", { encoding_format: "float" }, vector],
    ["nothing", {}, vector],
  ] as const;
  const rows = models.flatMap((model) =>
    sent.flatMap(([form, embedding]) =>
      asked.map(([format, more, shown]) => [model, form, format, embedding, more, shown] as const),
    ),
  );
  const dataOf = (count: number, embedding: unknown, index?: number) => ({
    kind: "json" as const,
    body: {
      data: Array.from({ length: count }, (_, place) => ({ index: index ?? place, embedding })),
      usage: { prompt_tokens: 7, total_tokens: 7 },
    },
  });
  const shownIn = ({ json }: { json: { data: { embedding: unknown }[] } }) =>
    json.data.map(({ embedding }) => embedding);

  test.for(rows)("%s sends %s, %s was asked for", async ([model, , , embedding, more, shown]) => {
    const payer = await world.caller();
    world.play(dataOf(2, embedding));
    const answer = await payer.post(path, { model, input: ["a", "b"], ...more });
    expect(shownIn(answer)).toEqual([shown, shown]);
    expect(answer.headers.get("x-genmesh-ignored-parameters")).toBeNull();
    expect(await charged(payer)).toBe(7);
  });

  test.for([
    ["vectors-refusing-the-field", { param: "encoding_format" }],
    ["vectors-refusing-without-a-word", {}],
  ] as const)(
    "a server that refuses base64 is asked for numbers, and for nothing else then: %s",
    async ([model, told]) => {
      const payer = await world.caller();
      const seen = world.play();
      world.upstream.script(({ body: { encoding_format: format } }) =>
        format === undefined ? dataOf(1, vector) : { kind: "status", status: 400, ...told },
      );
      const post = () => payer.post(path, { ...body, model, encoding_format: "base64" });
      for (const answer of [await post(), await post()]) {
        expect([answer.status, shownIn(answer)]).toEqual([200, [base64]]);
        expect(answer.headers.get("x-genmesh-ignored-parameters")).toBeNull();
      }
      const formats = seen.map((one) => one.body.encoding_format ?? "none");
      expect(formats).toEqual(["base64", "none", "none"]);
      expect(await charged(payer)).toBe(2 * 7);
    },
  );

  test("a refusal of the inputs is one", async () => {
    const payer = await world.caller();
    const asking = { ...body, encoding_format: "base64" };
    const seen = world.play({ kind: "status", status: 400, param: "input" });
    expect(refusalOf(await payer.post(path, asking))).toContain("invalid_value input");
    expect(seen).toHaveLength(1);
    // A refusal that may be about the format is followed by a second request. That is refused too.
    const again = world.play({ kind: "status", status: 422 });
    expect(refusalOf(await payer.post(path, asking))).toContain("invalid_value");
    expect(again).toHaveLength(2);
    const next = world.play(dataOf(1, base64));
    expect(shownIn(await payer.post(path, asking))).toEqual([base64]);
    expect(next[0]?.body.encoding_format).toBe("base64");
  });

  test.for(sent)("index 0 on every row is none: %s", async ([, embedding]) => {
    const payer = await world.caller();
    const other =
      typeof embedding === "string" ? Buffer.from(embedding, "base64").fill(0) : [0, 0, 0];
    const data = [embedding, Buffer.isBuffer(other) ? other.toString("base64") : other];
    world.play({
      kind: "json",
      body: {
        data: data.map((one) => ({ index: 0, embedding: one })),
        usage: { prompt_tokens: 7 },
      },
    });
    const answer = await payer.post(path, { ...body, input: ["a", "b"] });
    expect(shownIn(answer)).toEqual([vector, [0, 0, 0]]);
    expect(answer.json.data.map(({ index }: { index: number }) => index)).toEqual([0, 1]);
  });

  test.each([
    ["half a number", Buffer.alloc(6).toString("base64")],
    ["no number", Buffer.from(new Float32Array([Number.NaN]).buffer).toString("base64")],
    ["no base64", "ä"],
  ])("what is no vector is none: %s", async (_, embedding) => {
    const payer = await world.caller();
    world.play(dataOf(1, embedding));
    expect(refusalOf(await payer.post(path, body))).toContain("502 server_error");
  });
});
