import { afterAll, describe, expect, test } from "vitest";
import { asked, inputAudio, text, withReaders } from "../e2e/file-parts.ts";
import { askedOf } from "../e2e/media-world.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";
import { formOf } from "../support/scripted-media-upstream.ts";
import {
  m4aOf,
  m4aOfEdits,
  m4aOfTables,
  m4aWithin,
  mostOf,
  mp3Of,
  silentUnit,
  slowFrames,
  wavOf,
  webmWithBehind,
} from "./two-faced-sounds.ts";

// What an upstream plays is what was counted: it is never sent the caller's file, in which it could find more.
const world = await startWorld({
  catalog: (usual) => ({
    ...withReaders(usual),
    models: [
      ...withReaders(usual).models,
      {
        ...{ id: "ears", kind: "transcription", upstream: "main", upstreamModel: "up-ears" },
        ...{ maxSeconds: 6_000, pricing: { usdMicrosPerMinute: 60_000 } },
      },
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

/** What one second costs, USD micros. */
const secondCosts = 1_000;

/** Has a sound written down; answers what the upstream got, and the seconds that its caller paid. */
async function transcribe(file: Uint8Array) {
  const payer = await world.caller();
  const seen = world.play({ kind: "json", body: { text: "Good morning." } });
  const form = new FormData();
  form.set("model", "ears");
  form.set("file", new Blob([new Uint8Array(file)]), "a song.of mine.webm");
  const response = await fetch(`${world.baseUrl}/audio/transcriptions`, {
    ...{ method: "POST", body: form, headers: { authorization: `Bearer ${payer.key}` } },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const { status, json } = askedOf({ status: response.status, headers: response.headers, bytes });
  const { monthSpend } = await payer.settled();
  const sent = seen[0] && ((await formOf(seen[0])).get("file") as File);
  return {
    ...{ status, code: json.error?.code, name: sent?.name, type: sent?.type },
    got: sent && Buffer.from(await sent.arrayBuffer()),
    seconds: monthSpend / secondCosts,
  };
}

describe("of a file with two faces the upstream sees the one that was paid, or none", () => {
  test.each<[string, () => Buffer | Promise<Buffer>]>([
    ["M4A, many edits", () => m4aOfEdits(20)],
    ...["udta", "dinf", "edts", "ilst", "tref", "mvex", "sinf", "mdia", "trak", "moof", "free"].map(
      (name) =>
        [`M4A, an index in ${name}`, () => m4aWithin(name)] as [string, () => Promise<Buffer>],
    ),
    ["M4A, few times for many packets", () => m4aOfTables(["few", "allInChunk"])],
    ["M4A, two tables of times", () => m4aOfTables(["all", "few", "allInChunk"])],
    ["M4A, two tables of chunks", () => m4aOfTables(["all", "allInChunk", "fewInChunk"])],
    ["M4A, the same the other way", () => m4aOfTables(["all", "fewInChunk", "allInChunk"])],
    ["M4A, packets of many units", () => m4aOf(10, Buffer.concat(Array(200).fill(silentUnit)))],
    ...["9a1f", "00000000", "00", "ffffffff", "a301ffffffffffffff", "a34fff"].map(
      (broken) =>
        [`WebM, ${broken} in a cluster`, () => webmWithBehind(broken)] as [string, () => Buffer],
    ),
    [
      "WAV, frames far behind",
      () => wavOf(Buffer.concat([Buffer.alloc(1_300_000), slowFrames(60)])),
    ],
    [
      "WAV, frames far behind, of many channels",
      () => wavOf(Buffer.concat([Buffer.alloc(1_300_032), slowFrames(60)]), { channels: 32 }),
    ],
  ])("%s", async (_, make) => {
    const file = await make();
    const { status, code, got, seconds } = await transcribe(file);
    if (!got)
      return expect({ status, code, seconds }).toEqual({
        status: 400,
        code: "invalid_value",
        seconds: 0,
      });
    expect(status).toBe(200);
    expect(mostOf(got)).toBeGreaterThan(0);
    expect(mostOf(got)).toBeLessThanOrEqual(seconds + 0.03);
  });
});

/** Packets of a transport stream, with nothing in them. */
const transport = Buffer.concat(
  Array.from({ length: 150 }, () =>
    Buffer.concat([Buffer.from("47400010", "hex"), Buffer.alloc(184, 0xff)]),
  ),
);
const programme = Buffer.concat([
  Buffer.from("000001ba44000400040101894f f8".replaceAll(" ", ""), "hex"),
  ...Array.from({ length: 60 }, () => Buffer.from("000001c00040800000".padEnd(140, "55"), "hex")),
]);
const nut = Buffer.concat([
  Buffer.from("nut/multimedia container\0"),
  Buffer.from("4e4d7a561f5f04ad", "hex"),
]);
const dictation = Buffer.alloc(100_000);
dictation[256 - 44] = 0x84;
dictation.fill(0x55, 512);
const wired = Buffer.concat(
  Array<Buffer>(5).fill(Buffer.concat([Buffer.from("72f81f4e", "hex"), Buffer.alloc(4_092)])),
);

describe("a file in which decoders look for another format is refused", () => {
  test.each<[string, Buffer]>([
    ["MP3 with a transport stream", mp3Of(transport)],
    ["MP3 with a programme stream", mp3Of(programme)],
    ["MP3 with NUT", mp3Of(nut)],
    ["MP3 with DTS", mp3Of(Buffer.from("7ffe8001".repeat(40), "hex"))],
    ["WAV with NUT", wavOf(Buffer.concat([nut, Buffer.alloc(50_000)]))],
    [
      "WAV with MXF",
      wavOf(
        Buffer.concat([Buffer.from("060e2b34020501010d010201010200", "hex"), Buffer.alloc(50_001)]),
      ),
    ],
    ["WAV of a dictation machine", wavOf(dictation)],
    ["WAV with a codec as over a wire", wavOf(wired)],
  ])("%s", async (_, file) => {
    const { status, code, got, seconds } = await transcribe(file);
    expect({ status, code, got, seconds }).toEqual({
      status: 400,
      code: "invalid_value",
      got: undefined,
      seconds: 0,
    });
  });
});

test("its name and type are those of what is sent", async () => {
  const facts = async (file: Buffer) => {
    const { name, type } = await transcribe(file);
    return [name, type];
  };
  expect(await facts(wavOf(Buffer.alloc(9_000)))).toEqual(["a song.of mine.wav", "audio/wav"]);
  expect(await facts(mp3Of(Buffer.alloc(0)))).toEqual(["a song.of mine.mp3", "audio/mpeg"]);
  expect(await facts(await m4aOf(30))).toEqual(["a song.of mine.m4a", "audio/mp4"]);
  expect(await facts(webmWithBehind("00"))).toEqual(["a song.of mine.ogg", "audio/ogg"]);
});

test("a sound of a message is sent as it was counted", async () => {
  const payer = await world.caller();
  const frames = mp3Of(Buffer.alloc(0));
  const tag = Buffer.concat([
    Buffer.from("ID3\u0004\u0000\u0000\u0000\u0000\u0008\u0000", "latin1"),
    Buffer.alloc(1_024, 3),
  ]);
  const file = Buffer.concat([tag, frames]);
  const seen = world.play();
  const { status } = await payer.post("/responses", asked(inputAudio(file, "mp3")));
  expect(status).toBe(200);
  expect(seen[0]?.body.input[0].content).toEqual([text, inputAudio(frames, "mp3")]);
});
