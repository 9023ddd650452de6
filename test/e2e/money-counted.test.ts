import { afterAll, describe, expect, test } from "vitest";
import { createWorkshop } from "#kit/threads/workshop.ts";
import { createTokenCounter } from "../../services/text/tokens/count.ts";
import { requestsUnderWay } from "../support/requests-under-way.ts";
import type { Behaviour, Break } from "../support/scripted-behaviours.ts";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { developerPrompt } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld();
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

const opening = 10_000_000;
const messages = [{ role: "user", content: "Hi" }];
const counter = createTokenCounter(createWorkshop());
/** Five tokens each, so that a delta costs 20 micros. */
const deltas = [" the sea is wide and", " the sky is blue and", " so it goes on and"];

const streams: [name: string, path: string, body: object][] = [
  ["a response", "/responses", { model: "scripted", input: "Hi" }],
  ["chat, translated", "/chat/completions", { model: "scripted", messages }],
  ["chat, native", "/chat/completions", { model: "legacy", messages }],
];
const spent = async (payer: Caller) => {
  const { available, reserved, monthSpend } = await payer.balance();
  expect([reserved, monthSpend]).toEqual([0, opening - available]);
  return opening - available;
};
const isOutput = (data: string) => data.includes("the sea") || data.includes("the sky");

describe.for(streams)("%s", ([, path, body]) => {
  /** The counted cost of a request's input. It is the cost of a complete answer of one token, less that token. */
  const inputCost = async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", deltas: [" word"], usage: null });
    await payer.post(path, body);
    return (await spent(payer)) - 4;
  };
  /** The charge of a request whose caller leaves before any output. */
  const leavingCost = async () => {
    const payer = await world.caller();
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const asked = payer.post(path, body, { signal: leaving.signal }).catch(() => {});
    const seen = await world.upstream.request(1);
    leaving.abort();
    await asked;
    await seen.over;
    await until("the settlement", async () => (await payer.balance()).reserved === 0);
    return await spent(payer);
  };

  test("a caller that left before any output pays the input by count", async () => {
    const input = await inputCost();
    const text = await counter.count([developerPrompt, "Hi"]);
    expect(input).toBeGreaterThanOrEqual(text);
    expect(input).toBeLessThanOrEqual(text + 32);
    const cost = await leavingCost();
    expect(cost).toBeGreaterThanOrEqual(input);
    // The upstream's tokenizer may count more tokens of the input.
    expect(cost).toBeLessThanOrEqual(1.5 * input);
  });

  test.for<[name: string, fields: object]>([
    ["completed", {}],
    ["incomplete", { finish: "length" }],
  ])("%s without usage: input and output by count", async ([, fields]) => {
    const input = await inputCost();
    const tokens = await counter.count([deltas.join("")]);
    for (const ask of ["post", "stream"] as const) {
      const payer = await world.caller();
      world.play({ kind: "ok", deltas, usage: null, ...fields });
      await payer[ask](path, body);
      expect(await spent(payer)).toBe(input + 4 * tokens);
    }
  });

  test("a caller that left mid-stream pays the input and what was sent", async () => {
    const input = await inputCost();
    const payer = await world.caller();
    world.play({ kind: "ok", deltas, usage: null, break: { how: "hang", after: 2 } });
    const stream = await payer.open(path, body);
    await stream.until(({ data }) => isOutput(data));
    await stream.until(({ data }) => isOutput(data));
    stream.leave();
    await until("the settlement", async () => (await payer.balance()).reserved === 0);
    const tokens = await counter.count([deltas.slice(0, 2).join("")]);
    const cost = await spent(payer);
    expect(cost).toBeGreaterThanOrEqual(input + 4 * tokens);
    // The upstream's tokenizer may count more tokens of both.
    expect(cost).toBeLessThanOrEqual(1.5 * (input + 4 * tokens));
  });

  test("never above the bound, also where our count is", async () => {
    const input = await inputCost();
    const payer = await world.caller();
    world.play({ kind: "ok", deltas, usage: null, break: { how: "hang", after: 2 } });
    const stream = await payer.open(path, { ...body, max_output_tokens: 5, max_tokens: 5 });
    for (let seen = 0; seen < 2; seen++) await stream.until(({ data }) => isOutput(data));
    stream.leave();
    await until("the settlement", async () => (await payer.balance()).reserved === 0);
    const cost = await spent(payer);
    expect(cost).toBeGreaterThanOrEqual(input + 4 * 5);
    // The upstream's tokenizer may count more tokens of the input.
    expect(cost).toBeLessThanOrEqual(1.5 * input + 4 * 5);
  });

  test.for<Break["how"]>(["destroy", "end", "garbage", "error", "failed"])(
    "a stream that breaks by %s after some output costs nothing without usage",
    async (how) => {
      const payer = await world.caller();
      world.play({ kind: "ok", deltas, usage: null, break: { how, after: 2 } });
      const events = await payer.stream(path, body);
      expect(events.filter(({ data }) => isOutput(data)).length).toBeGreaterThanOrEqual(2);
      expect(await spent(payer)).toBe(0);
    },
  );

  test.for<[name: string, behaviour: Behaviour]>([
    ["400", { kind: "status", status: 400 }],
    ["401", { kind: "status", status: 401 }],
    ["429", { kind: "status", status: 429 }],
    ["500", { kind: "status", status: 500 }],
    ["503", { kind: "status", status: 503 }],
    ["garbage", { kind: "garbage" }],
    ["a broken connection", { kind: "drop" }],
    ["an error event", { kind: "events", events: [{ type: "error", message: "x" }] }],
    ["an end without an event", { kind: "events", events: [], done: false }],
  ])("%s before the first token costs nothing", async ([, behaviour]) => {
    const payer = await world.caller();
    world.play(behaviour);
    for (const stream of [false, true]) {
      const { status } = await payer.post(path, { ...body, stream });
      expect(status).toBeGreaterThanOrEqual(400);
    }
    expect(await spent(payer)).toBe(0);
  });

  test("time that runs out before the first token costs nothing", async () => {
    const payer = await world.caller();
    world.play({ kind: "hang" });
    const hasty = { ...body, model: "hasty" };
    const [json, stream] = await Promise.all([
      payer.post(path, hasty),
      payer.post(path, { ...hasty, stream: true }),
    ]);
    expect([json.status, stream.status]).toEqual([504, 504]);
    expect(await spent(payer)).toBe(0);
  });
});

describe("usage that came is charged, also where a fault came after it", () => {
  test("a failed response with usage", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", deltas, break: { how: "failed", after: 1 } });
    const events = await payer.stream("/responses", { model: "scripted", input: "Hi" });
    expect(events.at(-2)?.name).toBe("response.failed");
    expect(await spent(payer)).toBe(30);
  });

  test.for<[path: string, fields: object]>([
    ["/responses", { input: "Hi" }],
    ["/chat/completions", { messages }],
  ])("a failed answer that came whole: %s", async ([path, fields]) => {
    const payer = await world.caller();
    const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
    for (const [code, told] of [
      ["server_error", "502 server_error model_request_failed null"],
      ["content_filter", "400 invalid_request_error content_policy_violation null"],
    ]) {
      const error = { code, message: "theirs" };
      world.play({ kind: "json", body: { id: "r", status: "failed", output: [], error, usage } });
      expect(refusalOf(await payer.post(path, { model: "scripted", ...fields }))).toBe(told);
    }
    expect(await spent(payer)).toBe(60);
  });

  test("a connection that breaks right behind the answer", async () => {
    const payer = await world.caller();
    world.play({ kind: "ok", afterwards: "destroy" });
    await payer.stream("/responses", { model: "scripted", input: "Hi" });
    await payer.post("/responses", { model: "scripted", input: "Hi" });
    expect(await spent(payer)).toBe(60);
  });
});

describe("before a request is sent upstream it costs nothing", () => {
  test("a caller that leaves while it waits for a place at the upstream", async () => {
    const [narrow, payer] = [await world.caller(), await world.caller()];
    const seen = world.play({ kind: "ok", deltas, break: { how: "hang", after: 1 } });
    const body = { model: "narrow", input: "Hi" };
    const first = await narrow.open("/responses", body);
    const leaving = new AbortController();
    const asked = payer.post("/responses", body, { signal: leaving.signal }).catch(() => {});
    await until("the second to be held", async () => (await payer.balance()).reserved > 0);
    leaving.abort();
    await asked;
    await until("its end", async () => (await payer.balance()).reserved === 0);
    expect(await spent(payer)).toBe(0);
    expect(seen).toHaveLength(1);
    first.leave();
  });

  test("a caller that leaves while its body is still coming", async () => {
    const payer = await world.caller();
    const seen = world.play();
    const leaving = new AbortController();
    const body = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('{"model":"scripted",')),
    });
    const asked = fetch(`${world.baseUrl}/responses`, {
      method: "POST",
      headers: { authorization: `Bearer ${payer.key}`, "content-type": "application/json" },
      body,
      duplex: "half",
      signal: leaving.signal,
    } as RequestInit).catch((error: Error) => error.name);
    await until("the request", async () => (await requestsUnderWay(world.opsUrl)) > 0);
    leaving.abort();
    expect(await asked).toBe("AbortError");
    expect(await spent(payer)).toBe(0);
    expect(seen).toHaveLength(0);
  });
});
