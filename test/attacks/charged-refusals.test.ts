import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import OpenAI, { APIError, toFile } from "openai";
import { afterAll, describe, expect, test } from "vitest";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import type { Behaviour } from "../support/scripted-upstream.ts";

const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("writer", { maxInputTokens: 1_000, maxOutputTokens: 1_000 }),
      {
        ...{ id: "vectors", kind: "embedding", upstream: "main", maxInputTokens: 1_000 },
        pricing: { inputUsdMicrosPerMillionTokens: 1_000_000 },
      },
      {
        ...{ id: "ears", kind: "transcription", upstream: "main", maxSeconds: 60 },
        pricing: { usdMicrosPerMinute: 60_000 },
      },
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

/** A MiB more than is allowed. */
const tooManyBytes = 65 * 1024 * 1024;
const json = { "content-type": "application/json" };
const announced: Behaviour = {
  kind: "custom",
  handle(_seen, answer) {
    answer.writeHead(200, { ...json, "content-length": tooManyBytes });
    answer.write("{");
  },
};
const unannounced: Behaviour = {
  kind: "custom",
  async handle(_seen, answer) {
    answer.writeHead(200, json);
    const pieces = Array.from({ length: 65 }, () => Buffer.alloc(1024 * 1024, " "));
    await pipeline(Readable.from(pieces), answer).catch(() => {});
  },
};
const answering = (body: object): Behaviour => ({ kind: "json", body });
const chatUsage = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 };
const responseUsage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
const failed = { id: "r", object: "response", status: "failed", output: [], usage: responseUsage };

type Ask = (client: OpenAI) => Promise<unknown>;
const embed: Ask = (client) => client.embeddings.create({ model: "vectors", input: "Hello there" });
const hear: Ask = async (client) =>
  client.audio.transcriptions.create({
    model: "ears",
    file: await toFile(Buffer.from(sampleMp3(2)), "said.mp3"),
  });
const messages = [{ role: "user", content: "Hi" }] as const;
const complete: Ask = (client) =>
  client.chat.completions.create({ model: "writer", messages: [...messages] });
const respond: Ask = (client) => client.responses.create({ model: "writer", input: "Hi" });
const respondStreamed: Ask = (client) =>
  client.responses.create({ model: "writer", input: "Hi", stream: true });
const compact: Ask = (client) =>
  client.post("/responses/compact", { body: { model: "writer", input: "Hi" } });

/** Requests of which the upstream has done work before the refusal. By default the official SDK would repeat them by itself. */
async function askOnce(ask: Ask, behaviour: Behaviour) {
  const payer = await world.caller({ usdMicros: 1_000_000n });
  const seen = world.play(behaviour);
  const client = new OpenAI({ baseURL: world.baseUrl, apiKey: payer.key });
  const error = await ask(client).then(
    () => expect.unreachable("it should have been refused"),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof APIError)) throw error;
  const { monthSpend } = await payer.settled();
  expect(error.headers?.get("x-should-retry")).toBe("false");
  expect(error.headers?.get("x-genmesh-cost-usd-micros")).toBe(String(monthSpend));
  expect(error.error).toMatchObject({ costUsdMicros: monthSpend });
  expect(error.message).toMatch(/is charged/);
  expect(seen).toHaveLength(1);
  return { status: error.status, code: error.code, monthSpend };
}

describe("an answer that came, and that only we refuse for its size, costs its input", () => {
  test.each<[string, Ask, Behaviour, number, number]>([
    ["embeddings of a length that is told", embed, announced, 2, 5],
    ["embeddings of one that is not", embed, unannounced, 2, 5],
    ["a transcription", hear, announced, 2_000, 2_200],
    ["a chat completion", complete, announced, 1, 4_200],
    ["a response", respond, unannounced, 1, 4_200],
    ["a compaction", compact, announced, 1, 4_200],
  ])("%s", async (_, ask, behaviour, least, most) => {
    const { status, code, monthSpend } = await askOnce(ask, behaviour);
    expect([status, code]).toEqual([502, "model_request_failed"]);
    expect(monthSpend).toBeGreaterThanOrEqual(least);
    expect(monthSpend).toBeLessThanOrEqual(most);
  });
});

describe("what failed and reported its usage is charged once, and says so", () => {
  test.each<[string, Ask, Behaviour, number]>([
    ["embeddings", embed, answering({ data: [], usage: chatUsage }), 10],
    ["a chat completion", complete, answering({ error: { message: "x" }, usage: chatUsage }), 30],
    ["a response", respond, answering(failed), 30],
    [
      "a streamed response before it begins",
      respondStreamed,
      answering({ usage: responseUsage }),
      30,
    ],
    ["a compaction", compact, answering({ error: { message: "x" }, usage: responseUsage }), 30],
  ])("%s", async (_, ask, behaviour, cost) => {
    expect((await askOnce(ask, behaviour)).monthSpend).toBe(cost);
  });
});

test("what failed and cost nothing may be sent again", async () => {
  const payer = await world.caller();
  world.play(answering({ data: [] }));
  const {
    status,
    headers,
    json: body,
  } = await payer.post("/embeddings", {
    model: "vectors",
    input: "Hi",
  });
  expect([status, headers.get("x-should-retry")]).toEqual([502, null]);
  expect(headers.get("x-genmesh-cost-usd-micros")).toBeNull();
  expect(body.error.costUsdMicros).toBeUndefined();
});
