import { afterAll, describe, expect, test } from "vitest";
import type { Caller } from "../e2e/caller.ts";
import { chat } from "../e2e/catalog.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [...usual.models, chat("away", { upstream: "nowhere" })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());

test("an upstream's failure is logged with the id that the caller was given, whatever it sent", async () => {
  const caller = await world.caller();
  const body = { model: "away", input: "Hi" };
  for (const options of [{ headers: { "x-request-id": "mine-4711" } }, {}]) {
    const { status, headers } = await caller.post("/responses", body, options);
    expect(status).toBe(502);
    const callId = headers.get("x-request-id");
    const lines = world.log.map((line) => JSON.parse(line));
    expect(lines.filter((line) => line.callId === callId)).toMatchObject([
      { msg: "upstream failed", requestId: expect.stringMatching(/^text_/), upstream: "nowhere" },
    ]);
  }
});

describe("usage that an upstream reports with its failure is charged", () => {
  const opening = 10_000_000n;
  const messages = [{ role: "user", content: "Hi" }];
  const responses = { input_tokens: 50, output_tokens: 20, total_tokens: 70 };
  const chats = { prompt_tokens: 50, completion_tokens: 20, total_tokens: 70 };
  /** A token of input costs a micro, one of output four. */
  const cost = 50 + 4 * 20;
  const error = { message: "no", type: "server_error", code: "server_error" };
  const ways: [path: string, body: object, usage: object][] = [
    ["/responses", { model: "scripted", input: "Hi" }, responses],
    ["/responses/compact", { model: "scripted", input: "Hi" }, responses],
    ["/chat/completions", { model: "scripted", messages }, responses],
    ["/chat/completions", { model: "legacy", messages }, chats],
  ];
  const spent = async (caller: Caller) => Number(opening) - (await caller.settled()).available;

  test.for(ways)("as an HTTP error: %s %j", async ([path, body, usage]) => {
    for (const status of [400, 402, 403, 404, 422, 429, 500, 503]) {
      for (const stream of path.endsWith("compact") ? [false] : [false, true]) {
        const caller = await world.caller({ usdMicros: opening });
        const told = stream ? { error: { ...error, usage } } : { error, usage };
        world.play({ kind: "json", status, body: told });
        const answer = await caller.post(path, { ...body, stream }, { idempotencyKey: "one" });
        expect(answer.status).toBeGreaterThanOrEqual(400);
        expect(await spent(caller)).toBe(cost);
        expect(answer.text).not.toContain("usage");
        // A failed answer is not kept for its idempotency key.
        world.play({ kind: "json", status, body: { error } });
        await caller.post(path, { ...body, stream }, { idempotencyKey: "one" });
        expect(await spent(caller)).toBe(cost);
      }
    }
  });

  test("by our count where it cannot be", async () => {
    const caller = await world.caller({ usdMicros: opening });
    const usage = { ...responses, output_tokens: 1e12 };
    world.play({ kind: "json", status: 500, body: { error, usage } });
    const body = { model: "scripted", input: "Hi", max_output_tokens: 10 };
    expect((await caller.post("/responses", body)).status).toBe(502);
    const input = await spent(caller);
    expect(input).toBeGreaterThan(0);
    expect(input).toBeLessThan(80);
  });

  test("not of an upstream in whose place another one answered", async () => {
    const caller = await world.caller({ usdMicros: opening });
    world.play({ kind: "json", status: 500, body: { error, usage: responses } });
    world.backup.script({ kind: "ok" });
    const answer = await caller.post("/responses", { model: "backed", input: "Hi" });
    expect(answer.status).toBe(200);
    expect(await spent(caller)).toBe(10 + 4 * 5);
  });

  const streams: [path: string, body: object][] = [
    ["/responses", { model: "scripted", input: "Hi", stream: true }],
    ["/chat/completions", { model: "scripted", messages, stream: true }],
  ];
  const created = {
    type: "response.created",
    response: { id: "resp_1", object: "response", created_at: 1, model: "up", output: [] },
  };
  const said = {
    type: "response.output_text.delta",
    delta: "Hello",
    item_id: "m",
    output_index: 0,
  };
  test.for(streams)("as an error event: %s", async ([path, body]) => {
    for (const before of [[], [created], [created, said]]) {
      for (const told of [
        { ...error, type: "error", usage: responses },
        { type: "error", error: { ...error, usage: responses } },
      ]) {
        const caller = await world.caller({ usdMicros: opening });
        world.play({ kind: "events", events: [...before, told], done: false });
        const answer = await caller.post(path, body);
        expect(answer.text).toMatch(/response\.failed|"error"/);
        expect(await spent(caller)).toBe(cost);
      }
    }
  });

  test("as an error of a chat stream", async () => {
    const one = { id: "c", object: "chat.completion.chunk", created: 1, model: "up" };
    const choice = { index: 0, delta: { content: "Hi" }, finish_reason: null };
    for (const before of [[], [{ ...one, choices: [choice] }]]) {
      for (const told of [{ error, usage: chats }, { error: { ...error, usage: chats } }]) {
        const caller = await world.caller({ usdMicros: opening });
        world.play({ kind: "events", events: [...before, told], done: false });
        await caller.post("/chat/completions", { model: "legacy", messages, stream: true });
        expect(await spent(caller)).toBe(cost);
      }
    }
  });
});
