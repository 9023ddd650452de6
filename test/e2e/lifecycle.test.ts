import { describe, expect, test } from "vitest";
import { openRaw } from "../edge/raw.ts";
import { until } from "../support/until.ts";
import { refusalOf } from "./caller.ts";
import { oneProcessOnly, startWorld } from "./world.ts";

oneProcessOnly();
const body = { model: "scripted", input: "Hi" };
const never = new AbortController().signal;
const outOfTime = AbortSignal.abort(new Error("time is over"));

test("what is said to be ready serves the very first request", async () => {
  for (let once = 0; once < 3; once++) {
    await using world = await startWorld();
    const caller = await world.caller();
    world.play();
    expect((await caller.post("/responses", body)).status).toBe(200);
  }
});

describe("a stop that was asked for", () => {
  test("lets open streams and requests end, and serves what still arrives", async () => {
    await using world = await startWorld();
    const caller = await world.caller();
    // The process ends at the first moment without a request.
    const gate = Promise.withResolvers<void>();
    world.play({ kind: "ok", restAfter: gate.promise });
    const stream = await caller.open("/responses", body);
    await stream.until(({ name }) => name === "response.output_text.delta");
    const drained = world.mesh.drain(never);
    const ready = await fetch(new URL("/readyz", world.baseUrl));
    expect(ready.status).toBe(503);
    expect((await caller.post("/responses", body)).status).toBe(200);
    gate.resolve();
    const events = await stream.rest();
    expect(events.at(-2)?.name).toBe("response.completed");
    await drained;
    await expect(fetch(new URL("/healthz", world.baseUrl))).rejects.toThrow();
  });

  test("ends with response.failed what takes longer, for what it said", async () => {
    await using world = await startWorld();
    const caller = await world.caller();
    const seen = world.play({ kind: "ok", usage: null, break: { how: "hang", after: 1 } });
    const stream = await caller.open("/responses", body);
    const chat = await caller.open("/chat/completions", {
      model: "legacy",
      messages: [{ role: "user", content: "Hi" }],
    });
    await stream.until(({ name }) => name === "response.output_text.delta");
    await chat.until(({ data }) => data.includes("Hello"));
    const draining = world.mesh.drain(outOfTime);
    const events = await stream.rest();
    expect(events.map(({ name }) => name)).toEqual(["response.failed", undefined]);
    expect(events[0]?.json.response.error.code).toBe("service_unavailable");
    expect(events[1]?.data).toBe("[DONE]");
    const last = await chat.rest();
    expect(last).toHaveLength(1);
    expect(last[0]?.json.error).toMatchObject({
      type: "server_error",
      code: "service_unavailable",
    });
    await draining;
    await until("upstream to see it", () => seen.every(({ aborted }) => aborted));
    const { accountId } = caller;
    const { usdMicros } = await world.admin.billing.getBalance({ accountId });
    expect(usdMicros?.reserved).toBe(0n);
    expect(usdMicros?.available).toBeLessThan(10_000_000n);
  });

  test("refuses with 503 a request that has no answer yet", async () => {
    await using world = await startWorld();
    const caller = await world.caller();
    world.play({ kind: "hang" });
    const asked = caller.post("/responses", body);
    await world.upstream.request(1);
    const draining = world.mesh.drain(outOfTime);
    const refused = await asked;
    expect(refusalOf(refused)).toBe("503 server_error service_unavailable null");
    expect(refused.headers.get("retry-after")).toMatch(/^\d+$/);
    await draining;
  });

  test("does not wait for connections on which nothing was asked", async () => {
    await using world = await startWorld();
    using silent = await openRaw(Number(new URL(world.baseUrl).port));
    await world.mesh.drain(never);
    await silent.closed();
  });
});

describe("silence", () => {
  test("is broken by a comment every 15 s, and headers go out after the first", async () => {
    await using world = await startWorld();
    const caller = await world.caller();
    const seen = world.play({ kind: "hang" });
    const opening = caller.open("/responses", body);
    await world.upstream.request(1);
    await world.later(15_000);
    const stream = await opening;
    expect(stream.status).toBe(200);
    expect((await stream.next())?.comment).toBe("keep-alive");
    await world.later(15_000);
    expect((await stream.next())?.comment).toBe("keep-alive");
    stream.leave();
    await seen[0]?.over;
  });

  test("in the middle of a stream as well", async () => {
    await using world = await startWorld();
    const caller = await world.caller();
    world.play({ kind: "ok", break: { how: "hang", after: 1 } });
    const stream = await caller.open("/responses", body);
    await stream.until(({ name }) => name === "response.output_text.delta");
    await world.later(15_000);
    expect((await stream.next())?.comment).toBe("keep-alive");
    stream.leave();
  });

  test("that ends in a failure after the headers is an event", async () => {
    await using world = await startWorld();
    const caller = await world.caller();
    const gate = Promise.withResolvers<void>();
    world.play({
      kind: "custom",
      handle: async (_seen, response) => {
        await gate.promise;
        response.writeHead(500).end();
      },
    });
    const opening = caller.open("/responses", body);
    await world.upstream.request(1);
    await world.later(15_000);
    const stream = await opening;
    gate.resolve();
    const events = (await stream.rest()).filter(({ comment }) => comment === undefined);
    const names = ["response.created", "response.in_progress", "response.failed", undefined];
    expect(events.map(({ name }) => name)).toEqual(names);
    expect(events[2]?.json).toMatchObject({
      sequence_number: 2,
      response: { status: "failed", error: { code: "model_request_failed" } },
    });
    expect((await caller.balance()).available).toBe(10_000_000);
  });
});
