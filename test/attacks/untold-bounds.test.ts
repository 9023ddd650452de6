import { setTimeout as delay } from "node:timers/promises";
import { afterAll, describe, expect, test } from "vitest";
import { chat, pricing } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// Some upstreams accept no bound of the output. A small bound must not make their answers cheaper.

ownWorldOnly();

const maxOutputTokens = 20_000;
const world = await startWorld({
  catalog: (usual) => {
    const { main, legacy } = usual.upstreams;
    return {
      ...usual,
      upstreams: {
        ...usual.upstreams,
        boundless: { ...main, outputLimit: "none" },
        "boundless-legacy": { ...legacy, outputLimit: "none" },
      },
      models: [
        ...usual.models,
        chat("compactor", { maxOutputTokens }),
        chat("boundless", { upstream: "boundless", maxOutputTokens, hiddenTokensPerSecond: 200 }),
        chat("boundless-legacy", { upstream: "boundless-legacy", maxOutputTokens }),
      ],
    };
  },
});
afterAll(() => world[Symbol.asyncDispose]());

const outputPrice = pricing.outputUsdMicrosPerMillionTokens / 1_000_000;
const messages = [{ role: "user", content: "Hi" }];
const thought = { input_tokens: 100, output_tokens: 5_000, total_tokens: 5_100 };
const thoughtCost = 100 + 5_000 * outputPrice;

describe("a compaction", () => {
  const compaction = {
    ...{ id: "cmp_1", object: "response.compaction", created_at: 1, usage: thought },
    output: [{ type: "compaction", id: "cmp_up", encrypted_content: "x".repeat(20_000) }],
  };
  const asked = { model: "compactor", input: "Hi" };

  test("costs what it is, with any bound that its caller names, which upstream is not told", async () => {
    const caller = await world.caller();
    const seen = world.play({ kind: "json", body: compaction });
    const answer = await caller.post("/responses/compact", { ...asked, max_output_tokens: 1 });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-genmesh-ignored-parameters")).toBe("max_output_tokens");
    expect(answer.json.usage.costUsdMicros).toBe(thoughtCost);
    expect(seen[0]?.body).not.toHaveProperty("max_output_tokens");
    expect((await caller.settled()).monthSpend).toBe(thoughtCost);
  });

  test("of a bound that is none is refused all the same", async () => {
    const caller = await world.caller();
    const answer = await caller.post("/responses/compact", { ...asked, max_output_tokens: 0 });
    expect(answer.status).toBe(400);
    expect(answer.json.error.param).toBe("max_output_tokens");
  });

  test("a small wallet pays at least for one as long as its input", async () => {
    const input = "A word. ".repeat(2_000);
    const seen = world.play({ kind: "json", body: compaction });
    const poor = await world.caller({ usdMicros: 15_000n });
    expect((await poor.post("/responses/compact", { ...asked, input })).status).toBe(402);
    expect(seen).toHaveLength(0);
    expect((await poor.post("/responses/compact", asked)).status).toBe(200);
  });
});

describe.each([
  ["/responses", { model: "boundless", input: "Hi" }],
  ["/chat/completions", { model: "boundless", messages }],
  ["/chat/completions", { model: "boundless-legacy", messages }],
])("at an upstream that knows no bound: %s", (path, body) => {
  test("reasoning beyond the caller's bound is paid for", async () => {
    for (const stream of [false, true]) {
      const caller = await world.caller();
      world.play({ kind: "ok", usage: thought });
      const asked = { ...body, max_output_tokens: 10 };
      if (stream) await caller.stream(path, asked);
      else expect((await caller.post(path, asked)).status).toBe(200);
      expect((await caller.settled()).monthSpend).toBe(thoughtCost);
    }
  });

  test("all that the model may make is held for, and a wallet or key that has less is not served", async () => {
    const caller = await world.caller({ usdMicros: 100_000n });
    const gate = Promise.withResolvers<void>();
    const seen = world.play({ kind: "ok", usage: thought, firstByteAfter: gate.promise });
    const answer = caller.post(path, { ...body, max_output_tokens: 10 });
    await world.upstream.request(1);
    expect((await caller.balance()).reserved).toBeGreaterThan(maxOutputTokens * outputPrice);
    gate.resolve();
    await answer;
    expect(seen).toHaveLength(1);
    const poor = await world.caller({ usdMicros: 10_000n });
    for (const asked of [body, { ...body, max_output_tokens: 10 }]) {
      expect((await poor.post(path, asked)).status).toBe(402);
    }
    expect(seen).toHaveLength(1);
  });
});

test("a model that thinks behind a stop sequence is hung up on, and what it said is paid for", async () => {
  const response = { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] };
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const item = { type: "reasoning", id: "rs_1", summary: [] };
  const text = { item_id: "msg_1", output_index: 0, content_index: 0 };
  const caller = await world.caller();
  const seen = world.play({
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "text/event-stream" });
      answer.write(
        event("response.created", { response }) +
          event("response.output_text.delta", { ...text, delta: "Short. END" }) +
          event("response.output_item.added", { output_index: 1, item }),
      );
      await delay(60_000, undefined, { ref: false });
    },
  });
  const asked = { model: "boundless", messages, stop: ["END"] };
  await caller.stream("/chat/completions", asked);
  await seen[0]?.over;
  // The caller has its whole answer and has not left. So the seconds of waiting for the upstream cost nothing.
  expect((await caller.settled()).monthSpend).toBeGreaterThanOrEqual(3 * outputPrice);
  expect((await caller.settled()).monthSpend).toBeLessThan(60 * outputPrice);
});
