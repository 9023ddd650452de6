import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { type Asked, type Caller, refusalOf } from "./caller.ts";
import { askedOf, download, sha256Of, startMediaWorld } from "./media-world.ts";
import { isOwnWorld, ownWorldOnly } from "./world.ts";

const { world, media, ...rest } = await startMediaWorld();
afterAll(() => rest[Symbol.asyncDispose]());
ownWorldOnly();

const path = "/speech/generations";
const upstream = "POST /audio/speech";
const opening = 10_000_000;
/** 15 micros a character. */
const real = { model: "speech-1", input: "Hi, you.", voice: "alloy" };
/** 2.5 micros a character. */
const scripted = { ...real, model: "scripted-speech" };
const replayed = ({ headers }: Asked) => headers.get("idempotency-replayed");
const spent = async (caller: Caller) => {
  const { available, reserved, monthSpend } = await caller.balance();
  expect([reserved, monthSpend]).toEqual([0, opening - available]);
  return monthSpend;
};
beforeEach(() => {
  if (!isOwnWorld) return;
  media.always(upstream, undefined);
  media.requests.length = 0;
});

test("a sentence, spoken here, and its file", async () => {
  const caller = await world.caller();
  const { status, json, headers } = await caller.post(path, { ...real, language: "en", speed: 2 });
  expect(status).toBe(200);
  expect(headers.get("idempotency-replayed")).toBeNull();
  expect(json).toEqual({
    id: expect.stringMatching(/^speech_[a-z0-9]+$/),
    object: "speech",
    created_at: expect.any(Number),
    model: "speech-1",
    audio: {
      id: expect.stringMatching(/^file_/),
      url: `${world.baseUrl}${path}/${json.id}/files/${json.audio.id}`,
      mimeType: "audio/mpeg",
      sizeBytes: expect.any(Number),
      durationSeconds: expect.any(Number),
    },
    usage: { characters: 8, costUsdMicros: 120 },
  });
  expect(Math.abs(json.created_at - world.now() / 1_000)).toBeLessThan(30);
  expect(json.audio.durationSeconds).toBeGreaterThan(0.1);
  expect(await spent(caller)).toBe(120);

  const whole = await download(caller, json.audio.url);
  expect([whole.status, whole.bytes.length]).toEqual([200, json.audio.sizeBytes]);
  expect(Object.fromEntries(whole.headers)).toMatchObject({
    "content-type": "audio/mpeg",
    "x-content-type-options": "nosniff",
    "cache-control": expect.stringMatching(/^private\b/),
    etag: `"${sha256Of(whole.bytes)}"`,
  });
  const part = await download(caller, json.audio.url, { headers: { range: "bytes=-10" } });
  expect([part.status, part.bytes]).toEqual([206, whole.bytes.subarray(-10)]);
  const kept = await download(caller, `${json.audio.url}?download=1`, { method: "HEAD" });
  expect(kept.headers.get("content-disposition")).toMatch(/^attachment; filename="[\w.-]+\.mp3"$/);

  const sibling = await world.withKey(caller, {});
  const foreign = askedOf(await download(sibling, json.audio.url));
  expect(refusalOf(foreign)).toBe("404 not_found_error file_not_found null");
  const never = await caller.get(`${path}/speech_000000000000000000000000/files/${json.audio.id}`);
  expect([never.status, never.text]).toEqual([404, foreign.text]);
});

describe("the price", () => {
  test.each([
    ["abc", 3, 8],
    ["abcd", 4, 10],
    ["👋🏽 é", 4, 10],
    ["x".repeat(4_096), 4_096, 10_240],
    ["🙂".repeat(4_096), 4_096, 10_240],
  ])("is that of code points, rounded up once: %#", async (input, characters, costUsdMicros) => {
    const caller = await world.caller();
    const { status, json } = await caller.post(path, { ...scripted, input });
    expect(status).toBe(200);
    expect(json.usage).toEqual({ characters, costUsdMicros });
    expect(await spent(caller)).toBe(costUsdMicros);
    expect(media.seen(upstream).map(({ body }) => body.input)).toEqual([input]);
  });

  test("must be there: 402, and nothing is asked of upstream", async () => {
    const caller = await world.caller({ usdMicros: 7n, credits: 1_000n });
    const answer = await caller.post(path, { ...scripted, input: "abc" });
    expect(refusalOf(answer)).toBe("402 insufficient_quota insufficient_balance null");
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(media.requests).toEqual([]);
    expect((await caller.post(path, { ...scripted, input: "ab" })).status).toBe(200);
    expect(await caller.balance()).toMatchObject({ available: 2, reserved: 0, monthSpend: 5 });
  });

  test("is never charged beyond the wallet, however many ask at once", async () => {
    const caller = await world.caller({ usdMicros: 50n });
    // As many as an account may have under way or waiting until it is known to pay: others are answered 429.
    const all = Array.from({ length: 32 }, () => caller.post(path, { ...scripted, input: "abcd" }));
    const statuses = (await Promise.all(all)).map(({ status }) => status).sort();
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(27).fill(402)]);
    expect(await caller.balance()).toMatchObject({ available: 0, reserved: 0, monthSpend: 50 });
    expect(media.seen(upstream)).toHaveLength(5);
  });

  test.each([
    [400, undefined, "400 invalid_request_error invalid_value null"],
    [400, "content_policy_violation", "400 invalid_request_error content_policy_violation null"],
    [401, undefined, "502 server_error model_request_failed null"],
    [500, undefined, "502 server_error model_request_failed null"],
  ])("is nothing where upstream says %d %s", async (status, code, refusal) => {
    const caller = await world.caller();
    const message = "UPSTREAM-WORDS";
    const behaviour = { kind: "status", status, message } as const;
    media.always(upstream, code === undefined ? behaviour : { ...behaviour, code });
    const answer = await caller.post(path, scripted, { idempotencyKey: "k" });
    expect(refusalOf(answer)).toBe(refusal);
    expect(answer.text).not.toContain(message);
    expect(await spent(caller)).toBe(0);
    media.always(upstream, undefined);
    const again = await caller.post(path, scripted, { idempotencyKey: "k" });
    expect([again.status, replayed(again)]).toEqual([200, null]);
    expect(await spent(caller)).toBe(20);
  });
});

describe("idempotency", () => {
  test("fifty at once are one upstream call and one charge", async () => {
    const caller = await world.caller();
    const options = { idempotencyKey: "k" };
    const all = Array.from({ length: 50 }, () => caller.post(path, scripted, options));
    const answers = await Promise.all(all);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers.filter((one) => replayed(one) === "true")).toHaveLength(49);
    const late = await caller.post(path, scripted, options);
    expect([late.text, replayed(late)]).toEqual([answers[0]?.text, "true"]);
    expect(media.seen(upstream)).toHaveLength(1);
    expect(await spent(caller)).toBe(20);
  });

  test("another body under the same key is 422", async () => {
    const caller = await world.caller();
    const options = { idempotencyKey: "k" };
    await caller.post(path, scripted, options);
    const answer = await caller.post(path, { ...scripted, speed: 1 }, options);
    expect(refusalOf(answer)).toBe("422 idempotency_error idempotency_key_reused null");
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(await spent(caller)).toBe(20);
  });
});

describe("refused before anything is held", () => {
  test.each([
    ["no model", { model: undefined }, "missing_required_parameter", "model"],
    ["an unknown model", { model: "speech-9" }, "model_not_found", "model"],
    ["a model of another kind", { model: "music-1" }, "model_not_found", "model"],
    ["no input", { input: undefined }, "missing_required_parameter", "input"],
    ["an empty input", { input: "" }, "missing_required_parameter", "input"],
    ["an input of parts", { input: ["Hi"] }, "invalid_type", "input"],
    ["an input of 4,097", { input: "x".repeat(4_097) }, "invalid_value", "input"],
    ["no voice", { voice: undefined }, "missing_required_parameter", "voice"],
    ["an unknown voice", { voice: "Alloy" }, "unsupported_voice", "voice"],
    ["an unknown language", { language: "tlh" }, "unsupported_language", "language"],
    ["slower than 0.25", { speed: 0.24 }, "invalid_value", "speed"],
    ["faster than 4", { speed: 4.01 }, "invalid_value", "speed"],
    ["a speed as text", { speed: "1" }, "invalid_type", "speed"],
  ])("%s", async (_, changes, code, param) => {
    const caller = await world.caller();
    const answer = await caller.post(path, { ...real, ...changes });
    expect(refusalOf(answer)).toBe(`400 invalid_request_error ${code} ${param}`);
    expect(await spent(caller)).toBe(0);
  });

  test.each([0.25, 4])("a speed of %d is taken", async (speed) => {
    const caller = await world.caller();
    expect((await caller.post(path, { ...scripted, speed })).status).toBe(200);
    expect(media.seen(upstream)[0]?.body.speed).toBe(speed);
  });
});
