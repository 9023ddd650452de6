import { readFileSync } from "node:fs";
import { afterAll, beforeEach, expect, test } from "vitest";
import { parse } from "yaml";
import { bytesAnswer } from "../support/scripted-media-upstream.ts";
import { elevenLabsAnswers, startElevenLabs } from "../support/upstreams/elevenlabs.ts";
import { type Caller, refusalOf } from "./caller.ts";
import { type CatalogObject, upstreamKeys } from "./catalog.ts";
import { download } from "./media-world.ts";
import { isOneProcess, isOwnWorld, ownWorldOnly, startWorld } from "./world.ts";

const double = await startElevenLabs({ key: upstreamKeys.UP_KEY });
const spare = await startElevenLabs({ key: upstreamKeys.BACKUP_KEY });
/** The shipped catalog with the doubles' addresses, and a model with two accounts at ElevenLabs. */
function shipped(): CatalogObject {
  const file = new URL("../../deploy/catalogs/elevenlabs.yaml", import.meta.url);
  const catalog = parse(readFileSync(file, "utf8")) as CatalogObject;
  const own = catalog.upstreams.elevenlabs;
  const first = { ...own, baseUrl: `${double.origin}/v1`, apiKeyEnv: "UP_KEY" };
  const second = { ...own, baseUrl: `${spare.origin}/v1`, apiKeyEnv: "BACKUP_KEY" };
  const [usual] = catalog.models;
  if (!usual) throw new Error("no model");
  const both = { ...usual, id: "both", default: false, fallbackUpstreams: ["spare"] };
  return {
    ...catalog,
    upstreams: { elevenlabs: first, spare: second },
    models: [...catalog.models, both],
  };
}
const world = await startWorld({ catalog: shipped });
afterAll(async () => {
  await world[Symbol.asyncDispose]();
  await double[Symbol.asyncDispose]();
  await spare[Symbol.asyncDispose]();
});
ownWorldOnly();
beforeEach(() => {
  if (!isOwnWorld) return;
  for (const one of [double, spare]) {
    one.always("speak", undefined);
    one.credits = 10_000;
    one.requests.length = 0;
    one.speeches.length = 0;
  }
});

const path = "/speech/generations";
const opening = 10_000_000;
/** 300 micros a character. */
const hello = { model: "speech-1", input: "Hi, you.", voice: "rachel" };
const spentBy = async (caller: Caller) => {
  const { available, reserved } = await caller.balance();
  expect(reserved).toBe(0);
  return opening - available;
};

test("a sentence by the shipped catalog: its file, its price, and no second call for a repeat", async () => {
  const caller = await world.caller();
  const options = { idempotencyKey: "k" };
  const { status, json } = await caller.post(path, hello, options);
  expect(status).toBe(200);
  expect(json.usage).toEqual({ characters: 8, costUsdMicros: 2_400 });
  const file = await download(caller, json.audio.url);
  expect(Buffer.from(file.bytes).equals(Buffer.from(double.sound))).toBe(true);
  const again = await caller.post(path, hello, options);
  expect(again.headers.get("idempotency-replayed")).toBe("true");
  // The voice's id at ElevenLabs is in the catalog.
  expect(double.speeches).toMatchObject([
    { voice: "21m00Tcm4TlvDq8ikWAM", model: "eleven_multilingual_v2", text: "Hi, you." },
  ]);
  expect(await spentBy(caller)).toBe(2_400);
  const unknown = await caller.post(path, { ...hello, voice: "21m00Tcm4TlvDq8ikWAM" });
  expect(refusalOf(unknown)).toBe("400 invalid_request_error unsupported_voice voice");
});

test("the shipped catalog's formats, by OpenAI's route at the same price", async () => {
  const caller = await world.caller();
  for (const [format, asked] of [
    ["opus", "opus_48000_128"],
    ["wav", "wav_24000"],
    ["pcm", "pcm_24000"],
  ] as const) {
    const spoken = await caller.post("/audio/speech", { ...hello, response_format: format });
    expect([spoken.status, spoken.headers.get("content-type")]).toEqual([200, `audio/${format}`]);
    expect(double.speeches.at(-1)).toMatchObject({ format: asked });
  }
  const none = await caller.post("/audio/speech", { ...hello, response_format: "aac" });
  expect(refusalOf(none)).toBe("400 invalid_request_error unsupported_parameter response_format");
  // Bytes of another format than asked for. The operator pays for them.
  double.next("speak", bytesAnswer(double.sound, "audio/wav"));
  const wrong = await caller.post("/audio/speech", { ...hello, response_format: "wav" });
  expect(refusalOf(wrong)).toBe("502 server_error model_request_failed null");
  expect(await spentBy(caller)).toBe(3 * 2_400);
});

test("what it refuses costs nothing, and is the caller's to mend where it is the caller's", async () => {
  const caller = await world.caller();
  const fast = await caller.post(path, { ...hello, speed: 3 });
  expect(refusalOf(fast)).toBe("400 invalid_request_error invalid_value null");
  const named = await caller.post(path, { ...hello, language: "de" });
  expect(refusalOf(named)).toBe("400 invalid_request_error invalid_value null");
  double.next("speak", elevenLabsAnswers.againstPolicy);
  const refused = await caller.post(path, hello);
  expect(refusalOf(refused)).toBe("400 invalid_request_error content_policy_violation null");
  double.next("speak", { kind: "lost" });
  const lost = await caller.post(path, { ...hello, model: "both" });
  expect(refusalOf(lost)).toBe("502 server_error model_request_failed null");
  // The first upstream may charge for it, so no other one is asked.
  expect(spare.requests).toEqual([]);
  expect(await spentBy(caller)).toBe(0);
});

test("an empty account is the operator's alert: the next upstream speaks, or a 503 costs nothing", async () => {
  const caller = await world.caller();
  double.credits = 3;
  const alone = await caller.post(path, hello);
  expect(refusalOf(alone)).toBe("503 server_error service_unavailable null");
  expect(alone.text).not.toMatch(/quota|elevenlabs|credit/i);
  expect(await spentBy(caller)).toBe(0);
  const spoken = await caller.post(path, { ...hello, model: "both" });
  expect(spoken.status).toBe(200);
  expect([double.paid().length, spare.paid().length]).toEqual([0, 1]);
  expect(await spentBy(caller)).toBe(2_400);
  const told = world.log.filter((line) => line.includes("account at an upstream is empty"));
  expect(told.map((line) => JSON.parse(line))).toMatchObject([
    { level: 50, upstream: "elevenlabs", status: 401, code: "quota_exceeded" },
  ]);
  // In a mesh media's own ports have the metrics, and the world does not know these.
  if (!isOneProcess || world.opsUrl === undefined) return;
  const metrics = await (await fetch(new URL("/metrics", world.opsUrl))).text();
  expect(metrics).toMatch(
    /^genmesh_upstream_account_empty_timestamp_seconds\{upstream="elevenlabs"\} 1[\d.]+/m,
  );
});
