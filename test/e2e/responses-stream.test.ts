import { afterAll, describe, expect, test } from "vitest";
import { promptly } from "../support/promptly.ts";
import { untilStill } from "../support/until.ts";
import { chat } from "./catalog.ts";
import type { SseEvent } from "./sse.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

/** Waits 2 s for the next part of a stream, so that its first events arrive even on a busy machine. */
const patient = "patient";
const world = await startWorld({
  catalog: ({ upstreams, models, ...usual }) => ({
    ...usual,
    upstreams: { ...upstreams, [patient]: { ...upstreams.main, idleTimeoutMs: 2_000 } },
    models: [...models, chat(patient, { upstream: patient })],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller();

const ask = (model: string, fields: object = {}) =>
  caller.stream("/responses", { model, input: "Tell me of the sea.", ...fields });
const namesOf = (events: readonly SseEvent[]) => events.map(({ name }) => name);
const typesOf = (events: readonly SseEvent[]) => {
  const all = namesOf(events);
  return all.filter((name, at) => name !== all[at - 1]);
};

/** Checks the rules of every stream that ends. */
function expectWellFormed(events: readonly SseEvent[], terminal = "response.completed"): void {
  expect(events.at(-1)?.data).toBe("[DONE]");
  const typed = events.slice(0, -1);
  expect(typed.every(({ name, json }) => name === json.type)).toBe(true);
  expect(typed.map(({ json }) => json.sequence_number)).toEqual([...typed.keys()]);
  expect(typed.at(-1)?.name).toBe(terminal);
  expect(namesOf(typed).filter((name) => name === terminal)).toHaveLength(1);
  expect(namesOf(typed).slice(0, 2)).toEqual(["response.created", "response.in_progress"]);
}

const order = [
  "response.created",
  "response.in_progress",
  "response.output_item.added",
  "response.content_part.added",
  "response.output_text.delta",
  "response.output_text.done",
  "response.content_part.done",
  "response.output_item.done",
  "response.completed",
  undefined,
];

describe("a stream of the builtin model", () => {
  test("has its events in order, with numbers, ids and [DONE]", async () => {
    const events = await ask("chat-1");
    expectWellFormed(events);
    expect(typesOf(events)).toEqual(order);
    const ofItem = events.filter(({ json }) => json?.item_id !== undefined);
    const ids = new Set(ofItem.map(({ json }) => json.item_id));
    expect(ids.size).toBe(1);
    const added = events.find(({ name }) => name === "response.output_item.added")?.json;
    expect([...ids]).toEqual([added.item.id]);
    expect(added.item.id).toMatch(/./);
    expect(ofItem.every(({ json }) => json.output_index === 0 && json.content_index === 0)).toBe(
      true,
    );
  });

  test("says the same in deltas, in done and at its end, with usage", async () => {
    const events = await ask("chat-1");
    const deltas = events.filter(({ name }) => name === "response.output_text.delta");
    expect(deltas.length).toBeGreaterThan(3);
    expect(deltas.every(({ json }) => Array.isArray(json.logprobs))).toBe(true);
    const said = deltas.map(({ json }) => json.delta).join("");
    const done = events.find(({ name }) => name === "response.output_text.done");
    expect(done?.json.text).toBe(said);
    const { response } = events.at(-2)?.json ?? {};
    expect(response.output[0].content[0]).toMatchObject({ text: said, annotations: [] });
    expect(response.usage.input_tokens).toBeGreaterThan(0);
    const whole = await caller.post("/responses", {
      model: "chat-1",
      input: "Tell me of the sea.",
    });
    expect(whole.json.output[0].content[0].text).toBe(said);
    expect(whole.json.usage).toEqual(response.usage);
  });

  test("shows complete response objects, the model's id and the caller's instructions", async () => {
    const events = await ask("chat-1", { instructions: "Be kind." });
    const shown = events.filter(({ json }) => json?.response).map(({ json }) => json.response);
    expect(shown).toHaveLength(3);
    const names = shown.map((response) => Object.keys(response).sort());
    expect(names[0]).toEqual(names[2]);
    for (const response of shown) {
      expect(response).toMatchObject({ model: "chat-1", instructions: "Be kind.", store: false });
    }
    expect(new Set(shown.map(({ id }) => id)).size).toBe(1);
    expect(shown.map(({ status }) => status)).toEqual(["in_progress", "in_progress", "completed"]);
  });

  test("of a call has its arguments in deltas", async () => {
    const tools = [{ type: "function", name: "look", parameters: { type: "object" } }];
    const events = await ask("chat-1", { tools });
    expectWellFormed(events);
    const deltas = events.filter(({ name }) => name === "response.function_call_arguments.delta");
    const done = events.find(({ name }) => name === "response.function_call_arguments.done");
    expect(deltas.map(({ json }) => json.delta).join("")).toBe(done?.json.arguments);
    expect(events.at(-2)?.json.response.output[0]).toMatchObject({
      type: "function_call",
      name: "look",
      arguments: done?.json.arguments,
    });
  });

  test("that max_output_tokens cuts ends with response.incomplete", async () => {
    const events = await ask("chat-1", { max_output_tokens: 3 });
    expectWellFormed(events, "response.incomplete");
    const { response } = events.at(-2)?.json ?? {};
    expect(response.incomplete_details).toEqual({ reason: "max_output_tokens" });
  });

  test("is for machines: no cache, no transformation, no buffering", async () => {
    const stream = await caller.open("/responses", { model: "chat-1", input: "Say hi." });
    expect(stream.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(stream.headers.get("cache-control")).toContain("no-cache");
    expect(stream.headers.get("x-accel-buffering")).toBe("no");
    expect(stream.headers.get("x-request-id")).toMatch(/./);
    await stream.rest();
  });

  test("only true asks for one", async () => {
    const body = { model: "chat-1", input: "Say hi." };
    for (const stream of [false, null]) {
      const { headers, json } = await caller.post("/responses", { ...body, stream });
      expect(headers.get("content-type")).toMatch(/^application\/json/);
      expect(json.status).toBe("completed");
    }
  });
});

describe("a stream of an upstream", () => {
  ownWorldOnly();

  test("passes on, event by event, under our model and the caller's instructions", async () => {
    const seen = world.play();
    const events = await ask("scripted", { instructions: "Mine." });
    expect(seen[0]?.body).toMatchObject({ model: "up-model", stream: true, store: false });
    expectWellFormed(events);
    expect(typesOf(events)).toEqual(order);
    for (const { json } of events.filter((event) => event.json?.response)) {
      expect(json.response).toMatchObject({ model: "scripted", instructions: "Mine." });
    }
    expect(events.at(-2)?.json.response.usage).toMatchObject({ input_tokens: 10 });
  });

  test("is passed on as it comes", async () => {
    const seen = world.play({ kind: "ok", break: { how: "hang", after: 2 } });
    const stream = await caller.open("/responses", { model: "scripted", input: "Hi" });
    const deltas = [];
    while (deltas.length < 2) {
      const event = await stream.next();
      if (event?.name === "response.output_text.delta") deltas.push(event.json.delta);
    }
    expect(deltas).toEqual(["Hello", " from"]);
    stream.leave();
    await seen[0]?.over;
  });

  test("keeps events that no rule knows, and numbers them with the others", async () => {
    const novel = { type: "response.novel_thing.happened", novel: { deep: [1, "ü"] } };
    world.play({
      kind: "events",
      events: [
        {
          type: "response.created",
          response: { id: "resp_9", status: "in_progress" },
          sequence_number: 7,
        },
        { ...novel, sequence_number: 7 },
        { type: "response.completed", response: { id: "resp_9", status: "completed", output: [] } },
      ],
    });
    const events = await ask("scripted");
    expectWellFormedButBrief(events);
    expect(events.find(({ name }) => name === novel.type)?.json).toMatchObject(novel);
  });

  test("that leaves most out is made whole", async () => {
    world.play({
      kind: "events",
      events: [
        { type: "response.output_text.delta", delta: "Hel" },
        { type: "response.output_text.delta", delta: "lo" },
        { type: "response.completed", response: { status: "completed" } },
      ],
      done: false,
    });
    const events = await ask("scripted");
    expectWellFormed(events);
    expect(typesOf(events)).toEqual(order);
    expect(events.at(-2)?.json.response.output[0].content[0].text).toBe("Hello");
  });

  test.for([
    ["a cut connection", { how: "destroy", after: 2 }],
    ["an end without a last word", { how: "end", after: 2 }],
    ["garbage", { how: "garbage", after: 2 }],
    ["an error event", { how: "error", after: 2 }],
    ["a failure of its own", { how: "failed", after: 2 }],
  ] as const)("never looks complete after %s", async ([, broken]) => {
    world.play({ kind: "ok", usage: null, break: broken });
    const events = await ask("scripted", { instructions: "Mine." });
    expectWellFormed(events, "response.failed");
    expect(namesOf(events)).not.toContain("response.completed");
    const { response } = events.at(-2)?.json ?? {};
    expect(response).toMatchObject({
      status: "failed",
      error: { code: "model_request_failed" },
      model: "scripted",
      instructions: "Mine.",
    });
    expect(JSON.stringify(events)).not.toContain("UPSTREAM SECRET WORDS");
    const deltas = events.filter(({ name }) => name === "response.output_text.delta");
    expect(deltas.map(({ json }) => json.delta).join("")).toBe("Hello from");
  });

  test("that stops in its middle is a time-out", async () => {
    world.play({ kind: "ok", usage: null, break: { how: "hang", after: 1 } });
    const events = await ask(patient);
    expectWellFormed(events, "response.failed");
    expect(events.at(-2)?.json.response.error.code).toBe("upstream_timeout");
  });

  test("of an upstream that cannot stream is made of its answer", async () => {
    world.play({
      kind: "json",
      body: {
        output: [
          {
            type: "message",
            role: "assistant",
            content: [{ type: "output_text", text: "Whole." }],
          },
        ],
      },
    });
    const events = await ask("scripted");
    expectWellFormed(events);
    expect(events.at(-2)?.json.response.output[0].content[0].text).toBe("Whole.");
  });

  test("in pieces of one byte arrives whole", async () => {
    world.play({ kind: "ok", deltas: ["Grüße ", "aus 🐘", "\r\n\n", "."], pieceBytes: 1 });
    const events = await ask("scripted");
    expectWellFormed(events);
    expect(events.at(-2)?.json.response.output[0].content[0].text).toBe("Grüße aus 🐘\r\n\n.");
  });
});

describe("a caller that leaves", () => {
  ownWorldOnly();

  test("closes upstream within 250 ms, mid-stream", async () => {
    const seen = world.play({ kind: "ok", break: { how: "hang", after: 1 } });
    const stream = await caller.open("/responses", { model: "scripted", input: "Hi" });
    await stream.until(({ name }) => name === "response.output_text.delta");
    await promptly(250, () => {
      stream.leave();
      return seen[0]?.over;
    });
    expect(seen[0]?.aborted).toBe(true);
  });

  test.for(["stream", "JSON"])("closes upstream within 250 ms, before a %s began", async (form) => {
    world.play({ kind: "hang" });
    const leaving = new AbortController();
    const asked = caller
      .post(
        "/responses",
        { model: "scripted", input: "Hi", stream: form === "stream" },
        { signal: leaving.signal },
      )
      .catch((error: Error) => error.name);
    const seen = await world.upstream.request(1);
    await promptly(250, () => {
      leaving.abort();
      return seen.over;
    });
    expect(seen.aborted).toBe(true);
    expect(await asked).toBe("AbortError");
  });

  test("or reads no more holds upstream back", async () => {
    const deltas = Array<string>(40_000).fill("the sea is wide and blue and ".repeat(34));
    const total = deltas.join("").length;
    const seen = world.play({ kind: "ok", deltas });
    const stream = await caller.open("/responses", { model: "scripted", input: "Hi" });
    await stream.next();
    const written = await untilStill("upstream", () => seen[0]?.writtenBytes ?? 0);
    expect(written).toBeLessThan(total / 2);
    stream.leave();
    await seen[0]?.over;
  });
});

function expectWellFormedButBrief(events: readonly SseEvent[]): void {
  expect(events.at(-1)?.data).toBe("[DONE]");
  const typed = events.slice(0, -1);
  expect(typed.map(({ json }) => json.sequence_number)).toEqual([...typed.keys()]);
  expect(typed.at(-1)?.name).toBe("response.completed");
}
