import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type SoundFormat, soundFormats, soundTypes } from "#kit/sound/formats.ts";
import { maxListeners } from "../../services/media/speech/limits.ts";
import { sampleMp3, sampleSound } from "../../services/upstreams/media/samples.fixture.ts";
import { bytesAnswer } from "../support/scripted-media-upstream.ts";
import { until } from "../support/until.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { askedOf, startMediaWorld } from "./media-world.ts";
import { takeEvents } from "./sse.ts";
import { isOwnWorld, oneProcessOnly, ownWorldOnly } from "./world.ts";

ownWorldOnly();
const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());

const path = "/audio/speech";
const upstream = "POST /audio/speech";
/** 2.5 micros a character. */
const hello = { model: "scripted-speech", voice: "alloy", input: "Hi, you." };
const cost = 20;
const opening = 10_000_000;
const sound = sampleMp3(4);
const half = sound.subarray(0, 20_000);

beforeEach(() => {
  if (!isOwnWorld) return;
  media.always(upstream, undefined);
  media.requests.length = 0;
});

/** An upstream that has said the first part of an audio, and says the rest, or breaks off, when the test wants it. */
function holdingBack(first: Buffer = half, whole: Buffer = sound) {
  const held = Promise.withResolvers<"rest" | "cut">();
  const left: boolean[] = [];
  media.always(upstream, {
    kind: "custom",
    async handle(_seen, answer) {
      answer.writeHead(200, { "content-type": "audio/mpeg" });
      answer.write(first);
      const how = await held.promise;
      left.push(answer.destroyed);
      if (how === "cut") answer.socket?.destroy();
      else answer.end(whole.subarray(first.length));
    },
  });
  return { goOn: () => held.resolve("rest"), cut: () => held.resolve("cut"), left };
}

/** A reader of an answer. */
async function listen(
  caller: Caller,
  body: object = hello,
  { key, signal }: { key?: string; signal?: AbortSignal } = {},
) {
  const response = await fetch(`${caller.baseUrl}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: {
      ...{ authorization: `Bearer ${caller.key}`, "content-type": "application/json" },
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(signal ? { signal } : {}),
  });
  const reader = response.body?.getReader();
  const pieces: Uint8Array[] = [];
  let count = 0;
  const more = async () => {
    const { done, value } = (await reader?.read()) ?? { done: true };
    if (value) pieces.push(value);
    count += value?.length ?? 0;
    return !done;
  };
  return {
    response,
    headers: response.headers,
    /** Reads until there are this many bytes. */
    async upTo(wanted: number): Promise<Buffer> {
      while (count < wanted && (await more()));
      return Buffer.concat(pieces);
    },
    /** Reads to the end. Rejects where the connection breaks. */
    async all(): Promise<Buffer> {
      while (await more());
      return Buffer.concat(pieces);
    },
  };
}

/** Waits until the caller has no hold, and gives the price of the month. */
async function spent(caller: Caller): Promise<number> {
  const { available, monthSpend } = await caller.settled();
  expect(available).toBe(opening - monthSpend);
  return monthSpend;
}

test("a listener hears the first part while the upstream holds back the rest", async () => {
  const caller = await world.caller();
  const speaking = holdingBack();
  const listening = await listen(caller, hello, { key: "k" });
  expect(await listening.upTo(half.length)).toEqual(half);
  expect(Object.fromEntries(listening.headers)).toMatchObject({
    ...{ "content-type": "audio/mpeg", "cache-control": "private, no-cache" },
    ...{ "x-content-type-options": "nosniff", "x-genmesh-cost-usd-micros": `${cost}` },
  });
  expect(listening.headers.get("idempotency-replayed")).toBeNull();
  expect(await caller.balance()).toMatchObject({ reserved: cost, monthSpend: 0 });
  speaking.goOn();
  expect(await listening.all()).toEqual(sound);
  expect(await spent(caller)).toBe(cost);

  const again = await listen(caller, hello, { key: "k" });
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  expect(again.headers.get("content-length")).toBe(`${sound.length}`);
  expect(await again.all()).toEqual(sound);
  expect(media.seen(upstream)).toHaveLength(1);
  expect(await spent(caller)).toBe(cost);
});

test.each(soundFormats)("%s is heard while it is spoken, and stored", async (format) => {
  const caller = await world.caller();
  const whole = Buffer.from(sampleSound(format, 4));
  const first = whole.subarray(0, whole.length / 2);
  const speaking = holdingBack(first, whole);
  const body = { ...hello, response_format: format };
  const listening = await listen(caller, body, { key: "k" });
  expect(await listening.upTo(first.length)).toEqual(first);
  expect(listening.headers.get("content-type")).toBe(soundTypes[format]);
  speaking.goOn();
  expect(await listening.all()).toEqual(whole);
  expect(await (await listen(caller, body, { key: "k" })).all()).toEqual(whole);
  expect(await spent(caller)).toBe(cost);
});

describe("events", () => {
  const inEvents = { ...hello, stream_format: "sse" };
  const dataOf = (bytes: Buffer) => {
    const { events } = takeEvents(bytes.toString());
    return events.flatMap(({ data }) => (data === undefined ? [] : [JSON.parse(data)]));
  };
  const soundIn = (bytes: Buffer) =>
    Buffer.concat(dataOf(bytes).map(({ audio }) => Buffer.from(audio ?? "", "base64")));

  test("come while the sound is spoken, and end with its usage", async () => {
    const caller = await world.caller();
    const speaking = holdingBack();
    const listening = await listen(caller, inEvents, { key: "k" });
    let heard = await listening.upTo(1);
    while (soundIn(heard).length < half.length) heard = await listening.upTo(heard.length + 1);
    expect(soundIn(heard)).toEqual(half);
    expect(listening.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    speaking.goOn();
    for (const bytes of [
      await listening.all(),
      await (await listen(caller, inEvents, { key: "k" })).all(),
    ]) {
      expect(soundIn(bytes)).toEqual(sound);
      const [last, ...before] = dataOf(bytes).reverse();
      expect(new Set(before.map(({ type }) => type))).toEqual(new Set(["speech.audio.delta"]));
      const tokens = { input_tokens: 0, output_tokens: 0, total_tokens: 0 };
      const usage = { ...tokens, characters: 8, costUsdMicros: cost };
      expect(last).toEqual({ type: "speech.audio.done", usage });
    }
    expect(await spent(caller)).toBe(cost);
    expect(media.seen(upstream)).toHaveLength(1);
  });

  test("of a sound that breaks off end with an error, and cost nothing", async () => {
    const caller = await world.caller();
    const speaking = holdingBack();
    const listening = await listen(caller, inEvents);
    await listening.upTo(1);
    speaking.cut();
    const last = dataOf(await listening.all()).at(-1);
    expect(last).toEqual({ error: expect.objectContaining({ code: "model_request_failed" }) });
    expect(await spent(caller)).toBe(0);
  });
});

test("a sound that breaks off is cut, costs nothing, and its key is free", async () => {
  const caller = await world.caller();
  const speaking = holdingBack();
  const listening = await listen(caller, hello, { key: "k" });
  await listening.upTo(half.length);
  speaking.cut();
  await expect(listening.all()).rejects.toThrow();
  expect(await spent(caller)).toBe(0);
  media.always(upstream, undefined);
  const again = await listen(caller, hello, { key: "k" });
  expect([again.response.status, again.headers.get("idempotency-replayed")]).toEqual([200, null]);
  await again.all();
  expect(await spent(caller)).toBe(cost);
});

test("a caller that leaves pays for the speech, which goes on and is there for its key", async () => {
  const caller = await world.caller();
  const speaking = holdingBack();
  const leaving = new AbortController();
  const listening = await listen(caller, hello, { key: "k", signal: leaving.signal });
  await listening.upTo(half.length);
  leaving.abort();
  expect((await caller.balance()).reserved).toBe(cost);
  const joining = await listen(caller, hello, { key: "k" });
  expect(await joining.upTo(half.length)).toEqual(half);
  expect(joining.headers.get("idempotency-replayed")).toBe("true");
  speaking.goOn();
  expect(await joining.all()).toEqual(sound);
  expect(await (await listen(caller, hello, { key: "k" })).all()).toEqual(sound);
  expect(speaking.left).toEqual([false]);
  expect(await spent(caller)).toBe(cost);
});

test("a reader that takes nothing holds nobody back, and finds the rest in the store", async () => {
  const caller = await world.caller();
  // More than sockets and streams take on the way.
  const whole = Buffer.from(sampleSound("wav", 200));
  expect(whole.length).toBeGreaterThan(8 * 1024 * 1024);
  const speaking = holdingBack(whole.subarray(0, 1_000), whole);
  const listening = await listen(caller, { ...hello, response_format: "wav" });
  speaking.goOn();
  expect(await spent(caller)).toBe(cost);
  expect((await listening.all()).equals(whole)).toBe(true);
});

// The bound is of a process.
describe("many listeners", () => {
  oneProcessOnly();

  test("a bounded number hears it at once, and a later one finds the whole in the store", async () => {
    const caller = await world.caller();
    const joined = async () => {
      const metrics = await (await fetch(`${world.opsUrl}/metrics`)).text();
      return Number(/speech_repeats_total\{[^}]*"joined"[^}]*\} (\d+)/.exec(metrics)?.[1] ?? 0);
    };
    const before = await joined();
    const speaking = holdingBack();
    const asking = () => listen(caller, hello, { key: "k" });
    const listeners = await Promise.all(Array.from({ length: maxListeners }, asking));
    for (const one of listeners) expect(await one.upTo(half.length)).toEqual(half);
    const later = asking();
    await until("all to join", async () => (await joined()) === before + maxListeners);
    speaking.goOn();
    for (const one of listeners) expect(await one.all()).toEqual(sound);
    const { headers, all } = await later;
    expect(headers.get("content-length")).toBe(`${sound.length}`);
    expect(await all()).toEqual(sound);
    expect(media.seen(upstream)).toHaveLength(1);
    expect(await spent(caller)).toBe(cost);
  });
});

describe("what is no sound", () => {
  const answers: [string, SoundFormat, Buffer][] = [
    ...soundFormats.map((format): [string, SoundFormat, Buffer] => [
      ...(["JSON", format] as const),
      Buffer.from(JSON.stringify({ error: { message: "UPSTREAM-WORDS" } })),
    ]),
    ["a page", "mp3", Buffer.from("<html>UPSTREAM-WORDS</html>")],
    ["another format", "mp3", Buffer.from(sampleSound("opus"))],
    ["another format", "pcm", Buffer.from(sampleSound("wav"))],
    ["nothing", "mp3", Buffer.alloc(0)],
  ];
  test.each(answers)("is refused before its first byte: %s for %s", async (_, format, bytes) => {
    const caller = await world.caller();
    const hanging = bytes.length > 0 ? { hangAfter: bytes.length } : {};
    media.always(upstream, bytesAnswer(bytes, "audio/mpeg", hanging));
    const { response, all } = await listen(caller, { ...hello, response_format: format });
    const answer = askedOf({
      ...response,
      status: response.status,
      headers: response.headers,
      bytes: await all(),
    });
    expect(refusalOf(answer)).toBe("502 server_error model_request_failed null");
    expect(answer.text).not.toContain("UPSTREAM");
    expect(await spent(caller)).toBe(0);
  });
});

test("a stream_format of its own is refused by its name", async () => {
  const caller = await world.caller();
  const answer = await caller.post(path, { ...hello, stream_format: "websocket" });
  expect(refusalOf(answer)).toBe("400 invalid_request_error unsupported_parameter stream_format");
  const other = await caller.post("/speech/generations", { ...hello, stream_format: "sse" });
  expect(other.json.object).toBe("speech");
  await until("its charge", async () => (await spent(caller)) === cost);
});
