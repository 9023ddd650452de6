import { expect, test } from "vitest";
import { parseCatalog } from "./parse.ts";

const baseUrl = "http://127.0.0.1:1/v1";

/** A catalog of one speech model. */
const parsed = (fields: object) =>
  parseCatalog(
    JSON.stringify({
      upstreams: {
        hosted: { protocol: "openai", baseUrl },
        eleven: { protocol: "elevenlabs", baseUrl },
        peer: { protocol: "genmesh", baseUrl },
        studio: { protocol: "builtin" },
      },
      models: [
        {
          ...{ id: "s", kind: "speech", upstream: "hosted", voices: ["alloy"] },
          pricing: { usdMicrosPerMillionCharacters: 1 },
          ...fields,
        },
      ],
    }),
  );
const faultsOf = (fields: object) =>
  parsed(fields).faults?.map(({ path, message }) => `${path}: ${message}`);
const all = ["mp3", "opus", "aac", "flac", "wav", "pcm"];

test("a speech model names its formats, and makes MP3 where it names none", () => {
  const named = (fields: object) => parsed(fields).snapshot?.models[0]?.spec.value;
  expect(named({})).toMatchObject({ formats: ["mp3"] });
  expect(named({ formats: all })).toMatchObject({ formats: all });
});

test("MP3 is among them, each is there once, and others are none", () => {
  expect(faultsOf({ formats: ["wav"] })).toEqual([
    "models[0].formats: must hold mp3, which /speech/generations answers with (line 1, column 367)",
  ]);
  expect(faultsOf({ formats: [] })).toHaveLength(1);
  expect(faultsOf({ formats: ["mp3", "mp3"] })).toHaveLength(1);
  expect(faultsOf({ formats: ["mp3", "ulaw"] })).toHaveLength(1);
});

test("every upstream of the model makes them", () => {
  expect(faultsOf({ formats: all, fallbackUpstreams: ["peer"] })).toBeUndefined();
  expect(faultsOf({ formats: all, fallbackUpstreams: ["studio"] })).toEqual([
    "models[0].formats[1]: builtin makes mp3, wav, pcm alone (line 1, column 384)",
    "models[0].formats[2]: builtin makes mp3, wav, pcm alone (line 1, column 391)",
    "models[0].formats[3]: builtin makes mp3, wav, pcm alone (line 1, column 397)",
  ]);
  expect(faultsOf({ upstream: "eleven", formats: ["mp3", "wav", "aac"] })).toEqual([
    "models[0].formats[2]: elevenlabs makes mp3, opus, wav, pcm alone (line 1, column 390)",
  ]);
});
