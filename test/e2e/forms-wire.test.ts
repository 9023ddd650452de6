import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import {
  type AnswerForm,
  begun,
  chatUsage,
  chunk,
  completion,
  used,
} from "../support/forms/form.ts";
import { answerForms as forms } from "../support/forms/index.ts";
import { saidByChunks, saidByCompletion, saidByResponse } from "../support/forms/strict.ts";
import type { Behaviour } from "../support/scripted-behaviours.ts";
import { refusalOf } from "./caller.ts";
import { chat } from "./catalog.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

ownWorldOnly();
const world = await startWorld({
  catalog: (usual) => {
    const { baseUrl } = usual.upstreams.backup as { baseUrl: string };
    return {
      ...usual,
      upstreams: {
        ...usual.upstreams,
        spare: { protocol: "chat-completions", baseUrl },
        judged: { ...usual.upstreams.legacy },
      },
      models: [
        ...usual.models,
        chat("judged", { upstream: "judged", fallbackUpstreams: ["spare"] }),
        chat("spared", { upstream: "legacy", fallbackUpstreams: ["spare"] }),
      ],
    };
  },
});
afterAll(() => world[Symbol.asyncDispose]());
const caller = await world.caller({ usdMicros: 1_000_000_000n });
const path = "/chat/completions";
const messages = [{ role: "user", content: "Hi" }];

const sse = (events: AnswerForm["events"]) =>
  events
    .map((one) => (typeof one === "string" ? one : `data: ${JSON.stringify(one)}\n\n`))
    .join("");

describe("events where JSON was asked for are put together", () => {
  test.for(forms.map((form) => [form.name, form] as const))("%s", async ([, form]) => {
    world.play({ kind: "events", events: form.events });
    const model = form.upstream === "chat" ? "legacy" : "scripted";
    const { json } = await caller.post(path, { model, messages });
    expect(saidByCompletion(json)).toMatchObject({ ...form.says, usage: chatUsage });
    if (form.upstream === "chat") return;
    const answer = await caller.post("/responses", { model, input: "Hi" });
    expect(saidByResponse(answer.json)).toMatchObject({
      ...form.says,
      usage: { input_tokens: 1000, output_tokens: 10 },
    });
  });

  test("with any Content-Type, and without [DONE]", async () => {
    const body = sse([begun, chunk({ content: "one two" }, "stop"), used]);
    world.play({ kind: "garbage", body, contentType: "application/json" });
    const { json } = await caller.post(path, { model: "legacy", messages });
    expect(saidByCompletion(json)).toMatchObject({
      text: "one two",
      finish: "stop",
      usage: chatUsage,
    });
  });

  test("a compaction", async () => {
    const item = { type: "compaction", id: "cmp_1", encrypted_content: "sealed" };
    const response = {
      id: "r",
      status: "completed",
      output: [item, null],
      usage: { input_tokens: 3, output_tokens: 2 },
    };
    world.play({ kind: "events", events: [{ type: "response.completed", response }] });
    const { json } = await caller.post("/responses/compact", { model: "scripted", input: "Hi" });
    expect(json).toMatchObject({ object: "response.compaction", output: [item] });
  });

  test.for([
    ["nothing", [], 0],
    ["a beginning", [begun, chunk({ content: "one" })], 0],
    [
      "an error",
      [begun, chunk({ content: "one" }), { error: { code: 500 }, usage: chatUsage }],
      1040,
    ],
  ] as const)("that come to no answer are an error: %s", async ([, events, costUsdMicros]) => {
    world.play({ kind: "events", events, done: false });
    const before = await caller.settled();
    expect(refusalOf(await caller.post(path, { model: "legacy", messages }))).toBe(
      "502 server_error model_request_failed null",
    );
    expect(before.available - (await caller.settled()).available).toBe(costUsdMicros);
  });
});

describe("a body that is compressed though it was asked not to be", () => {
  const encodings: Record<string, [name: string, encode: (bytes: Buffer) => Buffer]> = {
    gzip: ["gzip", gzipSync],
    br: ["br", brotliCompressSync],
    zstd: ["zstd", zstdCompressSync],
    deflate: ["deflate", deflateSync],
    "raw deflate": ["deflate", deflateRawSync],
  };
  const sent = (type: string, encoding: string, bytes: Buffer): Behaviour => ({
    kind: "custom",
    handle: (_seen, response) => {
      response.writeHead(200, { "content-type": type, "content-encoding": encoding });
      response.end(bytes);
    },
  });

  test.for(Object.entries(encodings))("%s", async ([, [name, encode]]) => {
    const body = JSON.stringify(completion({ content: "one two" }, "stop"));
    world.play(sent("application/json", name, encode(Buffer.from(body))));
    const { json } = await caller.post(path, { model: "legacy", messages });
    expect(saidByCompletion(json)).toMatchObject({ text: "one two", usage: chatUsage });
    const events = sse([begun, chunk({ content: "one two" }, "stop"), used]);
    world.play(sent("text/event-stream", name, encode(Buffer.from(`${events}data: [DONE]\n\n`))));
    const chunks = await caller.stream(path, { model: "legacy", messages });
    expect(chunks.at(-1)?.data).toBe("[DONE]");
    expect(saidByChunks(chunks.slice(0, -1).map(({ json: one }) => one)).text).toBe("one two");
    const error = JSON.stringify({ error: { code: "content_policy_violation" } });
    world.play({
      kind: "custom",
      handle: (_seen, response) => {
        response.writeHead(400, { "content-type": "application/json", "content-encoding": name });
        response.end(encode(Buffer.from(error)));
      },
    });
    expect(refusalOf(await caller.post(path, { model: "legacy", messages }))).toContain(
      "content_policy_violation",
    );
  });

  test("that is cut, broken or far too much once it is decoded, is an error", async () => {
    const whole = gzipSync(JSON.stringify(completion({ content: "one two" }, "stop")));
    const bomb = gzipSync(Buffer.alloc(65 * 1024 * 1024, " "));
    for (const bytes of [whole.subarray(0, -12), Buffer.from("no gzip"), Buffer.alloc(0), bomb]) {
      world.play(sent("application/json", "gzip", bytes));
      expect(refusalOf(await caller.post(path, { model: "legacy", messages }))).toBe(
        "502 server_error model_request_failed null",
      );
    }
  });
});

describe("an error of 429 or 5xx inside a 200, before any output: the next upstream is asked", () => {
  const errors = [
    { code: 429, message: "slow down" },
    { code: "502" },
    { status: 503 },
    { type: "rate_limit_error" },
    { type: "overloaded_error" },
    { code: "server_error" },
  ];
  const asAnswers: Record<string, (error: object) => Behaviour> = {
    "as JSON": (error) => ({ kind: "json", body: { error } }),
    "in a choice": (error) => ({
      kind: "json",
      body: { choices: [{ index: 0, message: { content: "" }, finish_reason: "error", error }] },
    }),
    "as the first event": (error) => ({ kind: "events", events: ["data: {}\n\n", { error }] }),
    "in the first chunk": (error) => ({
      kind: "events",
      events: [{ ...chunk(undefined, "error", { error }) }],
    }),
  };

  test.for(Object.entries(asAnswers))("%s", async ([, answerOf]) => {
    for (const error of errors) {
      world.upstream.script(answerOf(error));
      world.backup.script({ kind: "ok", deltas: ["Hi"] });
      const { json } = await caller.post(path, { model: "spared", messages });
      expect(json.choices[0].message.content).toBe("Hi");
      const events = await caller.stream(path, { model: "spared", messages });
      expect(saidByChunks(events.slice(0, -1).map((one) => one.json)).text).toBe("Hi");
    }
  });

  test("on a Responses upstream", async () => {
    const error = { code: "rate_limit_exceeded", message: "slow down" };
    const failed = { id: "r", status: "failed", output: [], error };
    world.backup.script({ kind: "ok", deltas: ["Hi"] });
    for (const behaviour of [
      { kind: "json", body: { error } },
      { kind: "json", body: failed },
      { kind: "events", events: [{ type: "error", ...error }] },
      { kind: "events", events: [{ type: "response.failed", response: failed }] },
    ] as const) {
      world.upstream.script(behaviour);
      const { json } = await caller.post("/responses", { model: "backed", input: "Hi" });
      expect(saidByResponse(json).text).toBe("Hi");
      const events = await caller.stream("/responses", { model: "backed", input: "Hi" });
      expect(saidByResponse(events.at(-2)?.json.response).text).toBe("Hi");
    }
  });

  test("not where it is the request's own, or usage says that something was made", async () => {
    const seen = world.play({ kind: "json", body: { error: { code: 400 } } });
    world.backup.requests.length = 0;
    expect((await caller.post(path, { model: "judged", messages })).status).toBe(502);
    world.play({ kind: "json", body: { error: { code: 500 }, usage: chatUsage } });
    const before = await caller.settled();
    expect((await caller.post(path, { model: "judged", messages })).status).toBe(502);
    expect(before.available - (await caller.settled()).available).toBe(1040);
    expect(seen).toHaveLength(1);
    expect(world.backup.requests).toHaveLength(0);
  });
});
