import { afterAll, describe, expect, test } from "vitest";
import { ignoredParameters } from "../../services/upstreams/text/ignored.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      chat("all", { passParameters: ["*"] }),
      chat("all-legacy", { upstream: "legacy", passParameters: ["*"] }),
      chat("seeded", { passParameters: ["seed", "prediction"] }),
      chat("falls", { upstream: "nowhere", fallbackUpstreams: ["legacy"] }),
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();
const header = "x-genmesh-ignored-parameters";

async function named(path: string, body: object, options?: { idempotencyKey: string }) {
  const { status, headers, json } = await caller.post(path, body, options);
  expect({ status, error: json?.error ?? null }).toEqual({ status: 200, error: null });
  return headers.get(header)?.split(", ") ?? [];
}

const input = "Hi";
const messages = [{ role: "user", content: "Hi" }];
const prediction = { type: "content", content: "x" };

describe("what had no effect is named, and nothing else", () => {
  test.for<[path: string, fields: object, ignored: string[]]>([
    ["/responses", { input, max_tokens: 7 }, ["max_tokens"]],
    ["/responses", { input, max_completion_tokens: "x" }, ["max_completion_tokens"]],
    ["/responses", { input, max_output_tokens: 7, temperature: 1, seed: 4, instructions: "a" }, []],
    ["/responses", { input, store: true, service_tier: "priority" }, ["store", "service_tier"]],
    ["/responses", { input, store: false, background: false, user: "u", odd: null }, []],
    ["/responses", { input, stream_options: { include_obfuscation: false } }, ["stream_options"]],
    ["/responses/compact", { input, stream: true, max_tokens: 7 }, ["stream", "max_tokens"]],
    ["/responses/compact", { input, stream: false, instructions: "a" }, []],
  ])("on %s: %j", async ([path, fields, ignored]) => {
    world.play();
    for (const model of ["scripted", "all", "peer"]) {
      expect(await named(path, { model, ...fields })).toEqual(ignored);
    }
  });

  const path = "/chat/completions";
  const bounds = { max_tokens: 7, max_completion_tokens: 7, max_output_tokens: 7 };
  const translated = { stop: "x", response_format: { type: "text" }, verbosity: "low" };
  const others = { logprobs: true, reasoning_effort: "low", n: 1, instructions: "Mine." };
  test.for<[model: string, fields: object, ignored: string[]]>([
    ["scripted", { seed: 1 }, ["seed"]],
    ["chat-1", { seed: 1, store: true }, ["seed", "store"]],
    ["falls", { seed: 1 }, []],
    ["legacy", { seed: 1 }, []],
    ["seeded", { seed: 1, prediction, store: true }, ["store"]],
    ["all", { seed: 1, store: true, include: ["a"], input: "x", text: {} }, ["store", "input"]],
    ["scripted", { prediction, function_call: "auto" }, ["prediction", "function_call"]],
    ["legacy", { prediction, function_call: "auto" }, ["prediction"]],
    ["all-legacy", { prediction }, []],
    ["scripted", { service_tier: "auto", store: true }, ["service_tier", "store"]],
    ["legacy", { service_tier: "auto", store: true }, ["service_tier", "store"]],
    ["tiered", { service_tier: "flex", store: false }, []],
    ["tiered", { service_tier: "auto" }, ["service_tier"]],
    ...["scripted", "legacy", "peer"].map(
      (model) => [model, { ...bounds, ...translated, ...others }, []] as [string, object, string[]],
    ),
  ])("in chat on %s: %j", async ([model, fields, ignored]) => {
    world.play();
    expect(await named(path, { model, messages, ...fields })).toEqual(ignored);
  });

  test("what goes up is the caller's, the seed too where the upstream may know it", async () => {
    const seen = world.play();
    await named(path, { model: "all", messages, seed: 5 });
    const reasoning = { summary: "auto" };
    await named(path, { model: "scripted", messages, reasoning, reasoning_effort: "low" });
    expect(seen[0]?.body).toMatchObject({ seed: 5 });
    expect(seen[1]?.body.reasoning).toEqual({ summary: "auto", effort: "low" });
  });

  test("of a peer what it left out, as far as the caller sent it", () => {
    const asked = { model: "peer", messages, seed: 1, max_completion_tokens: 9 };
    const sent = { model: "up", messages, seed: 1, max_tokens: 9, service_tier: "flex" };
    const there = ["seed", "service_tier", "max_tokens"];
    const request = { asked, operation: "chat", stream: false } as const;
    expect(ignoredParameters(request, sent, path, there)).toEqual(["seed"]);
  });

  test("an answer that is repeated names the same, as a stream too", async () => {
    world.play();
    const body = { model: "scripted", messages, seed: 1, future: 2 };
    const options = { idempotencyKey: "again" };
    const first = await named(path, body, options);
    expect(first).toEqual(["seed", "future"]);
    expect(await named(path, body, options)).toEqual(first);
    expect(await named(path, { ...body, stream: true }, options)).toEqual(first);
  });

  test("a streamed answer that is repeated does so, too", async () => {
    world.play();
    const body = { model: "scripted", input, stream: true, future: 2 };
    const options = { idempotencyKey: "again-streamed" };
    expect(await named("/responses", body, options)).toEqual(["future"]);
    expect(await named("/responses", body, options)).toEqual(["future"]);
  });

  test("what stands within items, messages and tools by its path, and it stays here", async () => {
    const seen = world.play();
    const cache_control = { type: "ephemeral", ttl: "1h" };
    const content = [{ type: "input_text", text: "Hi", cache_control }];
    const tools = [{ type: "function", name: "f", parameters: {}, cache_control }];
    const asked = { model: "scripted", input: [{ role: "user", content }], tools, odd: 1 };
    const within = ["input.content.cache_control", "tools.cache_control"];
    expect((await named("/responses", asked)).sort()).toEqual([...within, "odd"].sort());
    expect(JSON.stringify(seen[0]?.body)).not.toContain("cache_control");
    const parts = [{ type: "text", text: "Hi", cache_control }];
    for (const model of ["scripted", "legacy", "chat-1"]) {
      const said = await named(path, { model, messages: [{ role: "user", content: parts }] });
      expect(said).toEqual(["messages.content.cache_control"]);
    }
    await named("/responses", { ...asked, model: "all" });
    expect(seen.at(-1)?.body).toMatchObject({ input: asked.input, tools });
  });

  test("the first 32 names, in a header that is not long", async () => {
    world.play();
    const many = Array.from({ length: 99 }, (_, at) => ["\u00e9 ".repeat(at + 30), 1]);
    const names = await named("/responses", {
      model: "scripted",
      input,
      ...Object.fromEntries(many),
    });
    expect(names).toHaveLength(32);
    expect(names.join(", ").length).toBeLessThan(4_096);
  });
});
