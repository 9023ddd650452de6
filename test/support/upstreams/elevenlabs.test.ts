import { afterEach, beforeEach, expect, test } from "vitest";
import { type ElevenLabsDouble, elevenLabsAnswers, startElevenLabs } from "./elevenlabs.ts";

let double: ElevenLabsDouble;
beforeEach(async () => {
  double = await startElevenLabs();
});
afterEach(() => double[Symbol.asyncDispose]());

const voice = "21m00Tcm4TlvDq8ikWAM";
const speak = (
  path = voice,
  body: object = { text: "Hello", model_id: "eleven_v3" },
  key = double.key,
) =>
  fetch(`${double.origin}/v1/text-to-speech/${path}`, {
    ...{ method: "POST", body: JSON.stringify(body) },
    headers: { "xi-api-key": key, "content-type": "application/json" },
  });
const codeOf = async (answer: Response) => [answer.status, (await answer.json()).detail.status];

test("speaks, whole and in chunks, in the format that is asked for", async () => {
  const settings = { stability: 0.5, similarity_boost: 0.75 };
  const whole = await speak(voice, { text: "Hello", voice_settings: settings });
  expect([whole.status, whole.headers.get("content-type")]).toEqual([200, "audio/mpeg"]);
  expect(whole.headers.get("character-cost")).toBe("5");
  expect(Buffer.from(await whole.arrayBuffer()).equals(double.sound as Buffer)).toBe(true);
  const chunked = await speak(`${voice}/stream?output_format=mp3_44100_64`);
  expect(chunked.headers.get("content-length")).toBeNull();
  expect((await chunked.bytes()).length).toBe(double.sound.length);
  const pcm = await speak(`${voice}?output_format=pcm_16000`);
  expect((await pcm.bytes()).length).toBe(32_000);
  expect(double.speeches).toMatchObject([
    { text: "Hello", model: "eleven_multilingual_v2", format: "mp3_44100_128", settings },
    { model: "eleven_v3", format: "mp3_44100_64" },
    { format: "pcm_16000" },
  ]);
  expect(double.paid()).toHaveLength(3);
});

test("refuses as ElevenLabs words it", async () => {
  expect(await codeOf(await speak(voice, {}, "wrong"))).toEqual([401, "invalid_api_key"]);
  expect(await codeOf(await speak("nobody"))).toEqual([404, "voice_not_found"]);
  const long = { text: "x".repeat(10_001) };
  expect(await codeOf(await speak(voice, long))).toEqual([400, "max_character_limit_exceeded"]);
  double.credits = 4;
  expect(await codeOf(await speak())).toEqual([401, "quota_exceeded"]);
  double.next("speak", elevenLabsAnswers.tooManyAtOnce);
  expect(await codeOf(await speak())).toEqual([429, "too_many_concurrent_requests"]);
  expect((await (await speak(voice, {})).json()).detail).toMatchObject([{ loc: ["body", "text"] }]);
  for (const format of ["flac", "wav_24001", "aac_44100_128", "opus_24000_32"]) {
    expect((await speak(`${voice}?output_format=${format}`)).status).toBe(422);
  }
  expect(double.paid()).toEqual([]);
});

test("speaks, is paid for it, and loses the answer, or cuts it", async () => {
  double.next("speak", { kind: "lost" }, { kind: "file", cutAfter: 100 });
  await expect(speak()).rejects.toThrow();
  await expect(speak().then((answer) => answer.bytes())).rejects.toThrow();
  expect(double.paid()).toHaveLength(2);
});
