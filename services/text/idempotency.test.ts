import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason, refuse } from "#kit/base/errors.ts";
import { openSqlite } from "#kit/store/sqlite.ts";
import { manualClock } from "#kit/time/clock.ts";
import {
  chunk,
  events,
  type Feed,
  feed,
  jsonAnswer,
  type ScriptedUpstreams,
  scriptedUpstreams,
  someUsage,
} from "../../test/contract/usage.upstream.ts";
import { createTextWorld, type Streamed, type TextWorld } from "../../test/contract/usage.world.ts";
import { dataOf } from "./base/frames.ts";
import { maxJoiners } from "./base/limits.ts";

const someCost = 311n;
const ask = { model: "chat-1", input: "Tell me of the sea." };
const asStream = { ...ask, stream: true };
const key = { key: "one" };

let world: TextWorld;
let upstreams: ScriptedUpstreams;
let current: Feed;

beforeEach(async () => {
  upstreams = scriptedUpstreams(async ({ signal }) => {
    current = feed(signal);
    current.push(events.begin());
    return current.answer;
  });
  world = await createTextWorld({ upstreams });
});
afterEach(() => world[Symbol.asyncDispose]());

const typesOf = (text: string) => [...text.matchAll(/^event: (.*)$/gm)].map((match) => match[1]);
const wholeStream = async (one: Streamed) => [await one.rest(), one.replayed()] as const;

describe("equal requests in flight", () => {
  test("as many as may join are one upstream call and one charge", async () => {
    const sent = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    upstreams.script = async () => {
      sent.resolve();
      await go.promise;
      return jsonAnswer();
    };
    const all = Array.from({ length: 1 + maxJoiners }, () => world.ask("RESPONSES", ask, key));
    await sent.promise;
    go.resolve();
    const answers = await Promise.all(all);
    expect(upstreams.sent).toHaveLength(1);
    expect(new Set(answers.map(({ json }) => JSON.stringify(json))).size).toBe(1);
    expect(answers.filter(({ replayed }) => !replayed)).toHaveLength(1);
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: someCost });
  });
  test("without a key each is its own", async () => {
    upstreams.script = async () => jsonAnswer();
    await Promise.all(Array.from({ length: 3 }, () => world.ask("RESPONSES", ask)));
    expect(upstreams.sent).toHaveLength(3);
    expect((await world.wallet()).spent).toBe(3n * someCost);
  });
  test("as many streams: all see it from its beginning, the late ones too", async () => {
    const early = Array.from({ length: 1 + maxJoiners / 2 }, () =>
      world.stream("RESPONSES", asStream, key),
    );
    const first = await Promise.all(early.map((one) => one.next()));
    expect(new Set(first).size).toBe(1);
    current.push(events.delta("Hel"));
    await early[0]?.next();
    const late = Array.from({ length: maxJoiners / 2 }, () =>
      world.stream("RESPONSES", asStream, key),
    );
    await Promise.all(late.map((one) => one.next()));
    current.push(events.delta("lo"), events.end());
    const texts = await Promise.all([...early.slice(1), ...late].map((one) => one.rest()));
    expect(new Set(texts).size).toBe(1);
    expect(texts[0]).toContain("Hel");
    expect(texts[0]?.endsWith("[DONE]\n\n")).toBe(true);
    expect(upstreams.sent).toHaveLength(1);
    expect(await world.wallet()).toMatchObject({ reserved: 0n, spent: someCost });
  });
  test("of a JSON request too, and the first caller may leave", async () => {
    const sent = Promise.withResolvers<Pick<AbortSignal, "aborted">>();
    const go = Promise.withResolvers<void>();
    upstreams.script = async ({ signal }) => {
      sent.resolve(signal);
      await go.promise;
      return jsonAnswer();
    };
    const gone = new AbortController();
    const first = world.ask("RESPONSES", ask, { ...key, signal: gone.signal });
    const signal = await sent.promise;
    const second = world.ask("RESPONSES", ask, key);
    await new Promise((resolve) => setImmediate(resolve));
    gone.abort();
    await expect(first).rejects.toThrow();
    expect(signal.aborted).toBe(false);
    go.resolve();
    expect((await second).json.id).toBe("resp_1");
    expect(upstreams.sent).toHaveLength(1);
  });
  test("one that wants another form gets the answer in its own, though the first leaves", async () => {
    const stream = world.stream("RESPONSES", asStream, key);
    await stream.next();
    const json = world.ask("RESPONSES", ask, key);
    await new Promise((resolve) => setImmediate(resolve));
    await stream[Symbol.asyncDispose]();
    current.push(events.delta("Hello"), events.end({ text: "Hello" }));
    expect(await json).toMatchObject({ replayed: true, json: { id: "resp_1" } });
    expect(upstreams.sent).toHaveLength(1);
  });
});

describe("a complete answer", () => {
  test("is replayed without a charge, also past a refusal of the edge", async () => {
    upstreams.script = async () => jsonAnswer();
    const first = await world.ask("RESPONSES", ask, key);
    const again = await world.ask("RESPONSES", ask, key);
    expect(again).toEqual({ json: first.json, replayed: true });
    const admission = { refuseWith: ErrorReason.RATE_LIMIT_EXCEEDED };
    expect((await world.ask("RESPONSES", ask, { ...key, admission })).replayed).toBe(true);
    await expect(world.ask("RESPONSES", ask, { key: "new", admission })).rejects.toMatchObject({
      reason: ErrorReason.RATE_LIMIT_EXCEEDED,
    });
    expect(upstreams.sent).toHaveLength(1);
    expect((await world.wallet()).spent).toBe(someCost);
  });
  test("is given by meaning, not by bytes, and in the form that is asked for", async () => {
    upstreams.script = async () => jsonAnswer({ text: "Hello there." });
    await world.ask("RESPONSES", ask, key);
    const shuffled = '{ "input":"Tell me of the s\\u0065a.",  "model":"chat-1", "stream":true }';
    const stream = world.stream("RESPONSES", shuffled, key);
    const [text, replayed] = await wholeStream(stream);
    expect(replayed).toBe(true);
    expect(typesOf(text)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
    ]);
    const numbers = [...text.matchAll(/"sequence_number":(\d+)/g)].map((match) => Number(match[1]));
    expect(numbers).toEqual(numbers.map((_, index) => index));
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true);
  });
  test("of a stream is replayed as JSON", async () => {
    const stream = world.stream("RESPONSES", asStream, key);
    await stream.next();
    current.push(events.delta("Hello"), events.end({ text: "Hello" }));
    await stream.rest();
    const { json, replayed } = await world.ask("RESPONSES", ask, key);
    expect(replayed).toBe(true);
    expect(json).toMatchObject({ id: "resp_1", status: "completed" });
  });
  test("with another body: 422, whether it runs or is complete", async () => {
    upstreams.script = async () => jsonAnswer();
    await world.ask("RESPONSES", ask, key);
    const reused = { reason: ErrorReason.IDEMPOTENCY_KEY_REUSED };
    const other = { ...ask, input: "Another." };
    await expect(world.ask("RESPONSES", other, key)).rejects.toMatchObject(reused);
    // Another operation and another key are other slots.
    await world.ask("COMPACT", other, key);
    await world.ask("RESPONSES", other, {
      ...key,
      principal: { accountId: "acct_test", keyId: "key_2" },
    });
  });
  test("with another body while it runs: 422", async () => {
    const stream = world.stream("RESPONSES", asStream, key);
    await stream.next();
    const other = world.stream("RESPONSES", { ...asStream, input: "Another." }, key);
    await expect(other.next()).rejects.toMatchObject({
      reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
    });
    await stream[Symbol.asyncDispose]();
  });
  test("survives a restart, and is forgotten after 24 hours", async () => {
    const folder = await mkdtemp(join(tmpdir(), "genmesh-text-"));
    const file = join(folder, "genmesh.db");
    const open = async (atMs: number, isNew: boolean) =>
      createTextWorld({ upstreams, file, isNew, clock: manualClock(atMs) });
    const start = world.clock.now();
    const day = 24 * 3_600_000;
    upstreams.script = async () => jsonAnswer({ id: "resp_before" });
    {
      // The end of this world records the work that was left for later.
      await using before = await open(start, true);
      await before.ask("RESPONSES", ask, key);
    }
    upstreams.script = async () => refuse(ErrorReason.MODEL_REQUEST_FAILED);
    await using after = await open(start + day - 1, false);
    expect(await after.ask("RESPONSES", ask, key)).toMatchObject({
      replayed: true,
      json: { id: "resp_before" },
    });
    expect((await after.wallet()).spent).toBe(someCost);
    upstreams.script = async () => jsonAnswer();
    await using later = await open(start + day, false);
    const { replayed } = await later.ask("RESPONSES", { ...ask, input: "New." }, key);
    expect(replayed).toBe(false);
    await rm(folder, { recursive: true });
  });
});

describe("a complete answer that cannot be kept", () => {
  const notKept = {
    reason: ErrorReason.IDEMPOTENCY_ANSWER_NOT_KEPT,
    metadata: { request_id: expect.stringMatching(/^(?:resp_|chatcmpl-)/), cost: `${someCost}` },
  };
  test("is not generated again for one who joined when its beginning was gone", async () => {
    const first = world.stream("RESPONSES", asStream, key);
    await first.next();
    // More than the kept bytes of a stream for callers that join it late.
    const piece = "x".repeat(1024 * 1024);
    for (let i = 0; i < 25; i++) {
      current.push(events.delta(piece, i + 1));
      await first.next();
    }
    const late = world.stream("RESPONSES", asStream, key).next();
    late.catch(() => {});
    await new Promise((resolve) => setImmediate(resolve));
    current.push(events.end({ text: "x".repeat(9 * 1024 * 1024) }, 26));
    expect(await first.rest()).toContain("[DONE]");
    await world.clock.advance(1_000);
    await expect(late).rejects.toMatchObject(notKept);
    expect(upstreams.sent).toHaveLength(1);
    expect((await world.wallet()).spent).toBe(someCost);
  });
  test("because the store does not take it: what it cost stands, and a repeat costs nothing", async () => {
    const folder = await mkdtemp(join(tmpdir(), "genmesh-text-"));
    const file = join(folder, "genmesh.db");
    {
      await using own = await createTextWorld({ upstreams, file });
      const db = openSqlite(file);
      await db.write((tx) => {
        tx.run(`CREATE TRIGGER no_answers BEFORE INSERT ON text_answer
          BEGIN SELECT RAISE(ABORT, 'too big'); END`);
      });
      db[Symbol.dispose]();
      upstreams.script = async () => jsonAnswer();
      expect((await own.ask("RESPONSES", ask, key)).replayed).toBe(false);
      await expect(own.ask("RESPONSES", ask, key)).rejects.toMatchObject(notKept);
      await expect(own.ask("RESPONSES", { ...ask, input: "Other." }, key)).rejects.toMatchObject({
        reason: ErrorReason.IDEMPOTENCY_KEY_REUSED,
      });
      expect(upstreams.sent).toHaveLength(1);
      expect(await own.wallet()).toMatchObject({ reserved: 0n, spent: someCost });
    }
    await rm(folder, { recursive: true });
  });
  test("because its stream does not add up to one", async () => {
    const body = { model: "chat-1", messages: [{ role: "user", content: "x" }] };
    upstreams.script = async ({ signal }) => {
      const one = feed(signal);
      const delta = { index: 0, delta: { content: "Hi" }, finish_reason: null };
      one.push(chunk({ choices: [delta] }, "Hi"));
      one.push({ ...chunk({ choices: [] }), ending: "completed", usage: someUsage });
      return one.answer;
    };
    await world.stream("CHAT_COMPLETIONS", { ...body, stream: true }, key).rest();
    await expect(world.ask("CHAT_COMPLETIONS", body, key)).rejects.toMatchObject(notKept);
    expect(upstreams.sent).toHaveLength(1);
  });
});

describe("what is not remembered", () => {
  test("a failure, before output or after it", async () => {
    upstreams.script = async () => refuse(ErrorReason.MODEL_REQUEST_FAILED);
    await expect(world.ask("RESPONSES", ask, key)).rejects.toThrow();
    upstreams.script = async ({ signal }) => {
      current = feed(signal);
      current.push(events.begin(), events.delta("x"));
      current.end();
      return current.answer;
    };
    const stream = world.stream("RESPONSES", { ...asStream, input: "Another." }, key);
    expect(await stream.rest()).toContain("response.failed");
    upstreams.script = async () => jsonAnswer();
    expect((await world.ask("RESPONSES", { ...ask, input: "Third." }, key)).replayed).toBe(false);
  });
  test("a request that is not valid", async () => {
    upstreams.script = async () => jsonAnswer();
    const wrong = { ...ask, max_output_tokens: 0 };
    await expect(world.ask("RESPONSES", wrong, key)).rejects.toThrow();
    expect((await world.ask("RESPONSES", ask, key)).replayed).toBe(false);
  });
  test.each(["", "x".repeat(256)])("keys of a wrong length are refused", async (wrong) => {
    await expect(world.ask("RESPONSES", ask, { key: wrong })).rejects.toMatchObject({
      reason: ErrorReason.INVALID_IDEMPOTENCY_KEY,
    });
  });
});

describe("chat", () => {
  const chat = { model: "chat-1", messages: [{ role: "user", content: "x" }] };
  const delta = (fields: object, finish: string | null = null) => ({
    choices: [{ index: 0, delta: { ...fields }, finish_reason: finish }],
  });
  const call = (index: number, fields: object) => delta({ tool_calls: [{ index, ...fields }] });
  const stream = (...more: ReturnType<typeof chunk>[]) => {
    upstreams.script = async ({ signal }) => {
      const one = feed(signal);
      one.push(chunk(delta({ role: "assistant", content: "" })), ...more);
      return one.answer;
    };
  };

  test("a stream is replayed as JSON, and as a stream with its usage", async () => {
    stream(chunk(delta({ content: "Hel" }), "Hel"), chunk(delta({ content: "lo" }), "lo"), {
      ...chunk(delta({}, "stop")),
      ending: "completed",
      usage: someUsage,
    });
    await world.stream("CHAT_COMPLETIONS", { ...chat, stream: true }, key).rest();
    const { json, replayed } = await world.ask("CHAT_COMPLETIONS", chat, key);
    expect(replayed).toBe(true);
    expect(json).toMatchObject({
      id: "chatcmpl-1",
      object: "chat.completion",
      choices: [
        { index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" },
      ],
      usage: { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 },
    });
    const options = { stream: true, stream_options: { include_usage: true } };
    const again = world.stream("CHAT_COMPLETIONS", { ...chat, ...options }, key);
    const frames = (await again.rest()).split("\n\n").filter((one) => one.includes("{"));
    const chunks = frames.map((one) => dataOf(Buffer.from(one)));
    expect(new Set(chunks.map((one) => one?.object))).toEqual(new Set(["chat.completion.chunk"]));
    expect(chunks[0]).toMatchObject(delta({ role: "assistant" }));
    expect(frames.join("")).toContain('"content":"Hello"');
    expect(chunks.at(-2)).toMatchObject(delta({}, "stop"));
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 50 } });
    expect(upstreams.sent).toHaveLength(1);
  });
  test("calls are put together from their pieces", async () => {
    stream(
      chunk(call(0, { id: "c0", type: "function", function: { name: "f", arguments: "" } })),
      chunk(call(0, { function: { arguments: '{"a"' } })),
      chunk(call(1, { id: "c1", type: "function", function: { name: "g", arguments: "{}" } })),
      chunk(call(0, { function: { arguments: ":1}" } })),
      { ...chunk(delta({}, "tool_calls")), ending: "completed", usage: someUsage },
    );
    await world.stream("CHAT_COMPLETIONS", { ...chat, stream: true }, key).rest();
    const { json } = await world.ask("CHAT_COMPLETIONS", chat, key);
    expect(json.choices).toMatchObject([
      {
        finish_reason: "tool_calls",
        message: {
          content: "",
          tool_calls: [
            { id: "c0", type: "function", function: { name: "f", arguments: '{"a":1}' } },
            { id: "c1", type: "function", function: { name: "g", arguments: "{}" } },
          ],
        },
      },
    ]);
  });
});
