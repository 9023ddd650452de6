import { afterAll, describe, expect, test } from "vitest";
import { promptly } from "../support/promptly.ts";
import { refusalOf } from "./caller.ts";
import { chat } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

ownWorldOnly();
// The inner deployment is an upstream of the outer one, which is a usual caller for it.
const inner = await startWorld();
afterAll(() => inner[Symbol.asyncDispose]());
const between = await inner.caller();
const outer = await startWorld({
  env: { PEER_KEY: between.key },
  catalog: (usual) => ({
    ...usual,
    upstreams: {
      ...usual.upstreams,
      peer: { protocol: "genmesh", baseUrl: inner.baseUrl, apiKeyEnv: "PEER_KEY" },
    },
    models: [
      ...usual.models.filter(({ id }) => id !== "peer"),
      chat("peer", { upstream: "peer", upstreamModel: "chat-1" }),
      chat("peers-scripted", { upstream: "peer", upstreamModel: "scripted" }),
      chat("telling", { upstream: "peer", upstreamModel: "chat-1", passParameters: ["echo"] }),
    ],
  }),
});
afterAll(() => outer[Symbol.asyncDispose]());
const caller = await outer.caller();

describe("a deployment behind another", () => {
  test("answers, whole and as a stream, under the outer one's names", async () => {
    const { json } = await caller.post("/responses", { model: "peer", input: "say hello" });
    expect(json).toMatchObject({ model: "peer", status: "completed", instructions: null });
    expect(json.output[0].content[0].text).toBe("hello");
    const events = await caller.stream("/responses", { model: "peer", input: "say hello" });
    expect(events.at(-2)?.json.response).toMatchObject({ model: "peer", status: "completed" });
    expect(events.at(-1)?.data).toBe("[DONE]");
    const messages = [{ role: "user", content: "say hello" }];
    const completion = await caller.post("/chat/completions", { model: "peer", messages });
    expect(completion.json.choices[0].message.content).toBe("hello");
    const chunks = await caller.stream("/chat/completions", { model: "peer", messages });
    expect(chunks.at(-1)?.data).toBe("[DONE]");
  });

  test("names what either of them ignored", async () => {
    const messages = [{ role: "user", content: "say hello" }];
    const ask = { model: "telling", novel: 1, echo: true, top_k: 3 };
    const header = "x-genmesh-ignored-parameters";
    const whole = await caller.post("/chat/completions", { ...ask, messages });
    expect(whole.headers.get(header)).toBe("novel, echo");
    const stream = await caller.open("/responses", { ...ask, input: "say hello" });
    expect(stream.headers.get(header)).toBe("novel, echo");
    await stream.rest();
  });

  test("compacts, and goes on", async () => {
    const { json } = await caller.post("/responses/compact", {
      model: "peer",
      input: [{ role: "user", content: "My parrot is called Euclid." }],
    });
    const next = await caller.post("/responses", {
      model: "peer",
      input: [...json.output, { role: "user", content: "And now?" }],
    });
    expect(next.json.output[0].content[0].text).toContain("Euclid");
  });

  test("charges both their own, by the inner one's count", async () => {
    const before = [await caller.balance(), await between.balance()];
    const { json } = await caller.post("/responses", { model: "peer", input: "say hello" });
    const { input_tokens, output_tokens } = json.usage;
    const after = [await caller.balance(), await between.balance()];
    const spent = after.map(({ monthSpend }, at) => monthSpend - (before[at]?.monthSpend ?? 0));
    // The inner chat-1 costs $0.25 and $2 for a million tokens.
    expect(spent).toEqual([
      input_tokens + 4 * output_tokens,
      Math.ceil((input_tokens * 250_000 + output_tokens * 2_000_000) / 1e6),
    ]);
  });

  test("refuses and fails in the outer one's words", async () => {
    inner.play({ kind: "status", status: 500 });
    const failed = await caller.post("/responses", { model: "peers-scripted", input: "Hi" });
    expect(refusalOf(failed)).toBe("502 server_error model_request_failed null");
    inner.play({ kind: "ok", usage: null, break: { how: "destroy", after: 1 } });
    const events = await caller.stream("/responses", { model: "peers-scripted", input: "Hi" });
    expect(events.at(-2)?.name).toBe("response.failed");
    expect(await caller.balance()).toMatchObject({ reserved: 0 });
    expect(await between.balance()).toMatchObject({ reserved: 0 });
  });

  test("is left when the caller leaves, all the way", async () => {
    const seen = inner.play({ kind: "ok", usage: null, break: { how: "hang", after: 1 } });
    const stream = await caller.open("/responses", { model: "peers-scripted", input: "Hi" });
    await stream.until(({ name }) => name === "response.output_text.delta");
    await promptly(500, () => {
      stream.leave();
      return seen[0]?.over;
    });
    expect(seen[0]?.aborted).toBe(true);
  });
});
