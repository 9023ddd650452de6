import { readFileSync } from "node:fs";
import {
  ALL_FORMATS,
  BufferSource,
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedPacketSink,
  Input,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WebMOutputFormat,
} from "mediabunny";
import { describe, expect, test } from "vitest";
import { sampleMp3 } from "../../../upstreams/media/samples.fixture.ts";
import { wavOf } from "./samples.fixture.ts";
import { measureSound } from "./sound.ts";

/** Audio of 0.3 to 0.8 s in base64, made by real encoders (FFmpeg 5.1: LAME, libopus, libvorbis, its own). */
const encoded: Record<string, string> = JSON.parse(
  readFileSync(new URL("./encoded.fixture.json", import.meta.url), "utf8"),
);
const bytesOf = (name: string) => new Uint8Array(Buffer.from(encoded[name] ?? "", "base64"));
const measured = (bytes: Uint8Array) => measureSound(new Uint8Array(bytes));

const second = 8_000;
const mp3 = sampleMp3(3);

describe("a sound is as long as its container says, and comes back as it came", () => {
  test.each([
    ["mp3", "mp3", 0.79],
    ["mp3 without facts", "mp3", 0.79],
    ["wav of 16 bits", "wav", 0.7],
    ["wav of 24 bits", "wav", 0.7],
    ["wav of floats", "wav", 0.3],
    ["flac", "flac", 0.5],
    ["m4a", "m4a", 0.7],
    ["mp4 in fragments", "m4a", 0.76],
    ["ogg with opus", "ogg", 0.7],
    ["ogg with vorbis", "ogg", 0.7],
    ["webm", "webm", 0.7],
  ])("%s", async (name, kind, seconds) => {
    const found = await measureSound(bytesOf(name));
    expect(found).toMatchObject({ kind, seconds: expect.closeTo(seconds, 2) });
    expect(Buffer.compare(found?.bytes ?? Buffer.alloc(0), bytesOf(name))).toBe(0);
  });
});

describe("it is held for at the lowest rate of its format", () => {
  test.each([
    ["mp3", 995],
    ["wav of 16 bits", 995],
    ["flac", 1_000],
    ["m4a", 750],
    ["ogg with opus", 750],
    ["webm", 750],
  ])("%s", async (name, bytesASecond) => {
    const bytes = bytesOf(name);
    const found = await measured(bytes);
    expect(found?.mostSeconds).toBe(bytes.length / bytesASecond);
  });

  test("also where its head says that it is shorter", async () => {
    const honest = await measured(wavOf(3 * second));
    const lying = await measured(wavOf(3 * second, { claimed: 8 }));
    expect(lying?.seconds).toBe(0.001);
    expect(lying?.mostSeconds).toBe(honest?.mostSeconds);
  });

  test("and no shorter than its container says", async () => {
    // Four samples a second.
    const slow = await measured(wavOf(second, { rate: 4 }));
    expect(slow).toMatchObject({ seconds: 2_000, mostSeconds: 2_000 });
  });
});

/** The packets of an audio file, its codec, and the configuration for a decoder. */
async function packetsOf(name: string) {
  using input = new Input({ source: new BufferSource(bytesOf(name)), formats: ALL_FORMATS });
  const track = await input.getPrimaryAudioTrack();
  const [codec, config] = [await track?.getCodec(), await track?.getDecoderConfig()];
  if (!track || !codec || !config) throw new Error("no sound");
  const packets: EncodedPacket[] = [];
  for await (const packet of new EncodedPacketSink(track).packets()) packets.push(packet);
  return { packets, codec, config };
}

/** The same audio ten times in a row, written by another program. */
async function written(format: OutputFormat, name: string): Promise<Buffer> {
  const { packets, codec, config } = await packetsOf(name);
  const target = new BufferTarget();
  const output = new Output({ format, target });
  const source = new EncodedAudioPacketSource(codec);
  output.addAudioTrack(source);
  await output.start();
  let at = 0;
  for (const { data, duration } of Array<EncodedPacket[]>(10).fill(packets).flat()) {
    await source.add(new EncodedPacket(data, "key", at, duration), { decoderConfig: config });
    at += duration;
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

/** A WebM in the form of a browser's recorder, without a length or an index. It has twelve blocks of 20 ms. */
async function recorded(size: Size): Promise<{ file: Buffer; firstEnd: number }> {
  const { packets, config } = await packetsOf("webm");
  const description = Buffer.from(config.description as Uint8Array);
  const byte = (id: string, value: number) => element(id, [Buffer.from([value])]);
  const about = [byte("d7", 1), byte("73c5", 1), byte("83", 2)];
  const codec = [element("86", [Buffer.from("A_OPUS")]), element("63a2", [description])];
  const tracks = element("1654ae6b", [
    element("ae", [...about, ...codec, element("e1", [byte("9f", 1)])]),
  ]);
  const blocks = packets
    .slice(0, 12)
    .map(({ data }, index) => element("a3", [Buffer.from([0x81, 0, index * 20, 0x80]), data]));
  const cluster = element("1f43b675", [byte("e7", 0), ...blocks], size);
  const scale = element("1549a966", [element("2ad7b1", [Buffer.from([0x0f, 0x42, 0x40])])]);
  const type = element("1a45dfa3", [element("4282", [Buffer.from("webm")])]);
  const file = Buffer.concat([type, element("18538067", [scale, tracks, cluster], size)]);
  const [, second = type] = blocks;
  return { file, firstEnd: file.indexOf(second) + second.length };
}

type Size = "known" | "unknown";

/** An element of EBML, with its size in eight bytes. */
function element(id: string, parts: Uint8Array[], size: Size = "known"): Buffer {
  const body = Buffer.concat(parts);
  const bytes = Buffer.alloc(8, 0xff);
  if (size === "known") bytes.writeBigUInt64BE(BigInt(body.length) | (1n << 56n));
  else bytes[0] = 1;
  return Buffer.concat([Buffer.from(id, "hex"), bytes, body]);
}

describe("a sound that is cut short", () => {
  test.each<Size>(["known", "unknown"])(
    "is taken as a browser's recorder left it, at any byte: sizes %s",
    async (size) => {
      const { file, firstEnd } = await recorded(size);
      // Up to the beginning of the last block, because the file does not have that block's length.
      expect((await measured(file))?.seconds).toBeCloseTo(0.22, 5);
      let before = 0;
      for (let cut = 0; cut < file.length; cut++) {
        const found = await measured(file.subarray(0, cut));
        if (cut < firstEnd) expect(found).toBeUndefined();
        else expect(found?.seconds).toBeGreaterThanOrEqual(before);
        before = found?.seconds ?? 0;
      }
      expect(before).toBeCloseTo(0.2, 5);
    },
  );

  test.each<[string, () => Promise<Uint8Array>]>([
    ...["mp3", "mp3 without facts", "wav of 16 bits", "flac"].map(
      (name) => [name, async () => bytesOf(name)] as [string, () => Promise<Uint8Array>],
    ),
    ["WebM", () => written(new WebMOutputFormat({ minimumClusterDuration: 0.5 }), "webm")],
    ["M4A", () => written(new Mp4OutputFormat({ fastStart: "in-memory" }), "m4a")],
    ["MP4 in fragments", () => written(new Mp4OutputFormat({ fastStart: "fragmented" }), "m4a")],
  ])("is what of it can be read: %s", async (_, make) => {
    const file = await make();
    const whole = await measured(file);
    for (const part of [0.99, 0.9, 0.75, 0.6]) {
      const found = await measured(file.subarray(0, file.length * part));
      expect(found?.seconds).toBeGreaterThan(0);
      expect(found?.seconds).toBeLessThanOrEqual((whole?.seconds ?? 0) + 0.001);
    }
  });

  test("is an Ogg up to its last page, and none where that is not whole", async () => {
    const file = await written(new OggOutputFormat(), "ogg with opus");
    const page = file.lastIndexOf("OggS");
    const whole = await measured(file);
    const found = await measured(file.subarray(0, page));
    expect(found?.seconds).toBeGreaterThan((whole?.seconds ?? 0) / 2);
    expect(found?.seconds).toBeLessThan(whole?.seconds ?? 0);
    expect(await measured(file.subarray(0, page + 100))).toBeUndefined();
  });

  test("is none without its index", async () => {
    const m4a = Buffer.from(bytesOf("m4a"));
    expect(await measured(m4a.subarray(0, m4a.indexOf("moov")))).toBeUndefined();
  });
});

test.for<[name: string, bytes: () => Uint8Array]>([
  ["a head alone", () => wavOf(0)],
  ["a codec in a WAV", () => wavOf(second, { code: 0x55 })],
  // The library would look for its frames for ever.
  ["a FLAC without a frame", () => bytesOf("flac").subarray(0, 42)],
  ["half a head", () => mp3.subarray(0, 3)],
  ["text", () => Buffer.from("no sound at all")],
  ["nothing", () => Buffer.alloc(0)],
  ["zeros", () => Buffer.alloc(10_000)],
])("it is none with %s", async ([, make]) => {
  expect(await measured(make())).toBeUndefined();
});
