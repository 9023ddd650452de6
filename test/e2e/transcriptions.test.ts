import OpenAI, { toFile } from "openai";
import { afterAll, describe, expect, test } from "vitest";
import { Scope } from "#proto/genmesh/common/v1/access_pb.ts";
import { sampleMp3 } from "../../services/upstreams/media/samples.fixture.ts";
import { formOf } from "../support/scripted-media-upstream.ts";
import { type Asked, type Caller, refusalOf } from "./caller.ts";
import type { CatalogObject } from "./catalog.ts";
import { askedOf } from "./media-world.ts";
import { ownWorldOnly, startWorld } from "./world.ts";

const world = await startWorld({ catalog: withTranscriptions });
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

/** Transcription models: a second costs 1,000 micros. */
function withTranscriptions(usual: CatalogObject): CatalogObject {
  const transcription = {
    kind: "transcription",
    upstream: "main",
    maxSeconds: 60,
    pricing: { usdMicrosPerMinute: 60_000 },
  };
  const models = [
    { ...transcription, id: "ears", upstreamModel: "up-ears" },
    { ...transcription, id: "ears-legacy", upstream: "legacy" },
    { ...transcription, id: "ears-peer", upstream: "peer" },
    { ...transcription, id: "ears-backed", upstream: "nowhere", fallbackUpstreams: ["backup"] },
    { ...transcription, id: "short", maxSeconds: 1 },
  ];
  return { ...usual, models: [...usual.models, ...models] };
}

const path = "/audio/transcriptions";
/** Silence of `seconds` seconds: 8,000 samples of a byte each. */
const wav = (seconds: number) => {
  const samples = Math.round(8_000 * seconds);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples, 40);
  return Buffer.concat([head, Buffer.alloc(samples, 128)]);
};
const sound = wav(2.5);
const said = {
  kind: "json",
  body: { text: "Good morning.", cost: 3, x_model: "OPERATOR" },
} as const;
const charged = async (payer: Caller) => (await payer.settled()).monthSpend;

type Fields = [string, string | Blob][];
const blob = (bytes: Uint8Array) => new Blob([new Uint8Array(bytes)]);
const usual: Fields = [
  ["file", blob(sound)],
  ["model", "ears"],
];

/** Sends a form. A field in `more` replaces the usual one, and an empty text removes it. */
async function post(caller: Caller, more: Fields = [], key?: string): Promise<Asked> {
  const form = new FormData();
  const names = new Set(more.map(([name]) => name));
  for (const [name, value] of [...usual.filter(([one]) => !names.has(one)), ...more]) {
    if (value instanceof Blob) form.append(name, value, "said.wav");
    else if (value !== "") form.append(name, value);
  }
  const headers = {
    authorization: `Bearer ${caller.key}`,
    ...(key === undefined ? {} : { "idempotency-key": key }),
  };
  const response = await fetch(`${world.baseUrl}${path}`, { method: "POST", headers, body: form });
  const bytes = Buffer.from(await response.arrayBuffer());
  return askedOf({ status: response.status, headers: response.headers, bytes });
}

test.for(["json", "text", "verbose_json"])("its header says what it cost: %s", async (format) => {
  const payer = await world.caller();
  world.play({ kind: "json", body: { ...said.body, duration: 2 } });
  for (const key of ["costed", "costed"]) {
    const form = new FormData();
    for (const [name, value] of usual) form.append(name, value);
    form.append("response_format", format);
    const authorization = `Bearer ${payer.key}`;
    const { status, headers } = await fetch(`${world.baseUrl}${path}`, {
      ...{ method: "POST", body: form },
      headers: { authorization, "idempotency-key": key },
    });
    expect(status).toBe(200);
    expect(headers.get("x-genmesh-cost-usd-micros")).toBe(`${await charged(payer)}`);
  }
});

describe("the official SDK", () => {
  test("has the words, as JSON, as text, and with their times", async () => {
    const payer = await world.caller();
    const client = new OpenAI({ baseURL: world.baseUrl, apiKey: payer.key, maxRetries: 0 });
    const seen = world.play(said);
    const file = await toFile(sound, "said.wav");
    const asked = { model: "ears", file };
    const answer = await client.audio.transcriptions.create(asked);
    expect(answer).toMatchObject({
      ...{ text: "Good morning.", usage: { type: "duration", seconds: 3 } },
    });
    const text = await client.audio.transcriptions.create({ ...asked, response_format: "text" });
    expect(text).toBe("Good morning.\n");
    const words = [{ word: "Good", start: 0, end: 0.4, secret: "OPERATOR" }];
    world.play({ kind: "json", body: { ...said.body, duration: 4, words, language: "english" } });
    const verbose = await client.audio.transcriptions.create({
      ...asked,
      response_format: "verbose_json",
      timestamp_granularities: ["word"],
      language: "en",
      temperature: 0.2,
    });
    expect(verbose).toEqual({
      ...{ text: "Good morning.", duration: 4, language: "english" },
      words: [{ word: "Good", start: 0, end: 0.4 }],
      usage: { type: "duration", seconds: 4, cost: 0.00402, costUsdMicros: 4_020 },
    });
    const form = await formOf(seen[0] as NonNullable<(typeof seen)[0]>);
    expect([...form].filter(([name]) => name !== "file")).toEqual(
      expect.arrayContaining([
        ["model", "up-ears"],
        ["response_format", "verbose_json"],
        ["timestamp_granularities[]", "word"],
        ["language", "en"],
        ["temperature", "0.2"],
      ]),
    );
    const sent = form.get("file") as File;
    expect([sent.name, Buffer.from(await sent.arrayBuffer()).equals(sound)]).toEqual([
      ...["said.wav", true],
    ]);
    // Two and a half seconds twice, and the four that the upstream reported.
    expect(await charged(payer)).toBe(2_520 + 2_520 + 4_020);
  });
});

test.each(["ears", "ears-legacy", "ears-peer", "ears-backed"])(
  "goes up, and nothing of upstream's own comes back: %s",
  async (model) => {
    const payer = await world.caller();
    world.play(said);
    const { status, json, headers } = await post(payer, [
      ["model", model],
      ["echo", "1"],
    ]);
    expect([status, json]).toEqual([
      200,
      {
        text: "Good morning.",
        usage: { type: "duration", seconds: 3, cost: 0.00252, costUsdMicros: 2_520 },
      },
    ]);
    expect(headers.get("x-genmesh-ignored-parameters")).toBe("echo");
    const [seen] = [...world.upstream.requests, ...world.backup.requests];
    const form = seen && (await formOf(seen));
    expect(form?.get("model")).toBe(model === "ears" ? "up-ears" : model);
    expect(form?.has("echo")).toBe(false);
    expect(await charged(payer)).toBe(2_520);
  },
);

describe("money", () => {
  /** A second for each 995 bytes: 20,044 of them. */
  const held = 20_160;

  test("is held by bytes before anything is sent, and no more is charged", async () => {
    const poor = await world.caller({ usdMicros: BigInt(held - 1) });
    const seen = world.play({ kind: "json", body: { ...said.body, duration: 50 } });
    const refused = await post(poor);
    expect(refusalOf(refused)).toBe("402 insufficient_quota insufficient_balance null");
    expect(refused.json.error).toMatchObject({
      ...{ requiredUsdMicros: held, spendableUsdMicros: held - 1 },
    });
    expect(seen).toHaveLength(0);
    const able = await world.caller({ usdMicros: BigInt(held) });
    const { json } = await post(able);
    expect(json.usage).toMatchObject({ seconds: 20, costUsdMicros: held });
    expect(await charged(able)).toBe(held);
  });

  test("is held for the model's longest sound at the most", async () => {
    const poor = await world.caller({ usdMicros: 1n });
    const { json } = await post(poor, [["file", blob(wav(59))]]);
    expect(json.error.requiredUsdMicros).toBe(60_000);
  });

  test.each([
    ["less than the container says", 2, 2_520],
    ["nothing", undefined, 2_520],
    ["more than it says", 9, 9_000],
  ])("is the larger of both where upstream reports %s", async (_, duration, cost) => {
    const payer = await world.caller();
    world.play({ kind: "json", body: { text: "Good morning.", duration } });
    expect((await post(payer)).status).toBe(200);
    expect(await charged(payer)).toBe(cost);
  });

  test("is charged once for a key, by the sound's own bytes", async () => {
    const payer = await world.caller();
    const seen = world.play(said);
    const first = await post(payer, [], "one");
    const again = await Promise.all(Array.from({ length: 5 }, () => post(payer, [], "one")));
    expect(new Set([first, ...again].map(({ text }) => text)).size).toBe(1);
    const replayed = again.map(({ headers }) => headers.get("idempotency-replayed"));
    expect(replayed).toEqual(Array(5).fill("true"));
    const other = await post(payer, [["file", blob(wav(2))]], "one");
    expect(refusalOf(other)).toContain("422 idempotency_error");
    expect(seen).toHaveLength(1);
    expect(await charged(payer)).toBe(2_520);
  });

  test.each([
    ["an error", { kind: "status", status: 500 }, "502 server_error model_request_failed"],
    ["no route", { kind: "status", status: 404 }, "model_not_responses_capable model"],
    ["no words", { kind: "json", body: { texts: 1 } }, "502 server_error model_request_failed"],
    ["no JSON", { kind: "garbage" }, "502 server_error model_request_failed"],
    [
      "a field that is not the model's",
      { kind: "status", status: 400, param: "model" },
      "400 invalid_request_error invalid_value",
    ],
  ] as const)("is not charged for %s", async (_, behaviour, refusal) => {
    const payer = await world.caller();
    world.play(behaviour);
    expect(refusalOf(await post(payer))).toContain(refusal);
    expect(await charged(payer)).toBe(0);
  });
});

describe("refused before anything is sent", () => {
  test.each<[string, Fields, string]>([
    ["no file", [["file", ""]], "missing_required_parameter file"],
    ["no sound", [["file", blob(Buffer.from("no sound"))]], "invalid_value file"],
    ["an empty file", [["file", blob(Buffer.alloc(0))]], "invalid_value file"],
    ["half a head", [["file", blob(sampleMp3().subarray(0, 3))]], "invalid_value file"],
    ["too long a sound", [["file", blob(wav(61))]], "invalid_value file"],
    ["a second file", [["other", blob(sound)]], "invalid_value other"],
    ["srt", [["response_format", "srt"]], "unsupported_parameter response_format"],
    ["a stream", [["stream", "true"]], "unsupported_parameter stream"],
    ["chunks", [["chunking_strategy", "auto"]], "unsupported_parameter chunking_strategy"],
    ["heat", [["temperature", "7"]], "invalid_value temperature"],
    ["a model of another kind", [["model", "chat-1"]], "model_not_found model"],
    ["no model", [["model", ""]], "missing_required_parameter model"],
  ])("%s", async (_, more, refusal) => {
    const payer = await world.caller();
    const seen = world.play(said);
    expect(refusalOf(await post(payer, more))).toContain(refusal);
    expect(seen).toHaveLength(0);
  });

  test("a key without the scope or the model", async () => {
    const payer = await world.caller();
    world.play(said);
    const images = await world.withKey(payer, { scopes: [Scope.IMAGES] });
    expect(refusalOf(await post(images))).toContain("403 permission_error");
    const other = await world.withKey(payer, { allowedModels: ["chat-1"] });
    expect(refusalOf(await post(other))).toBe("403 permission_error permission_denied model");
  });

  test("what is no form", async () => {
    const payer = await world.caller();
    expect(refusalOf(await payer.post(path, { model: "ears" }))).toContain(
      "415 invalid_request_error unsupported_media_type",
    );
  });
});

test("goes up as it came, under the ending and type of what it is", async () => {
  const payer = await world.caller();
  const seen = world.play(said);
  const tagged = Buffer.concat([sampleMp3(), Buffer.from("TAG a title".padEnd(128))]);
  expect((await post(payer, [["file", blob(tagged)]])).status).toBe(200);
  const file = seen[0] && ((await formOf(seen[0])).get("file") as File);
  expect([file?.name, file?.type]).toEqual(["said.mp3", "audio/mpeg"]);
  expect(Buffer.from((await file?.arrayBuffer()) ?? new ArrayBuffer(0)).equals(tagged)).toBe(true);
});

test("an MP3 is measured too", async () => {
  const payer = await world.caller();
  world.play(said);
  const { json, status } = await post(payer, [["file", blob(sampleMp3())]]);
  expect(status).toBe(200);
  const cost = await charged(payer);
  expect(cost).toBeGreaterThan(0);
  expect(Math.abs(cost - 1_000 * json.usage.seconds)).toBeLessThanOrEqual(560);
});
