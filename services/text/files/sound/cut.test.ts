import { readFileSync } from "node:fs";
import {
  ALL_FORMATS,
  BufferSource,
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  EncodedPacketSink,
  EncodedVideoPacketSource,
  Input,
  Mp4OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WebMOutputFormat,
} from "mediabunny";
import { describe, expect, test } from "vitest";
import { takeSound } from "./length.ts";

// Recorders are switched off and uploads break: of a sound that is cut short each packet before the cut is taken.

const encoded: Record<string, string> = JSON.parse(
  readFileSync(new URL("./encoded.fixture.json", import.meta.url), "utf8"),
);

/** A file's sound: its packets, its codec and what a decoder is told of it. */
async function read(bytes: Uint8Array) {
  using input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  const [track] = await input.getAudioTracks();
  if (!track) throw new Error("no sound");
  const packets: EncodedPacket[] = [];
  for await (const packet of new EncodedPacketSink(track).packets()) packets.push(packet);
  const [codec, config] = [await track.getCodec(), await track.getDecoderConfig()];
  if (!codec || !config) throw new Error("no codec");
  return { packets, codec, config };
}

/** Sounds of 0.7 s. */
const [opus, vorbis, aac] = await Promise.all(
  ["webm", "ogg with vorbis", "m4a"].map((name) =>
    read(new Uint8Array(Buffer.from(encoded[name] ?? "", "base64"))),
  ),
);
if (!opus || !vorbis || !aac) throw new Error("no sounds");

/** The same sound some times over, as another program writes it; `pictures`: bytes of each, one for each packet. */
async function written(
  format: OutputFormat,
  { packets, codec, config }: Awaited<ReturnType<typeof read>>,
  { times = 4, pictures = 0 } = {},
) {
  const target = new BufferTarget();
  const output = new Output({ format, target });
  const source = new EncodedAudioPacketSource(codec);
  output.addAudioTrack(source);
  const film = new EncodedVideoPacketSource("vp9");
  if (pictures > 0) output.addVideoTrack(film);
  await output.start();
  let at = 0;
  for (const { data, duration } of Array(times).fill(packets).flat() as EncodedPacket[]) {
    await source.add(new EncodedPacket(data, "key", at, duration), { decoderConfig: config });
    if (pictures > 0) {
      const picture = new EncodedPacket(new Uint8Array(pictures), "key", at, duration);
      const decoderConfig = { codec: "vp09.00.10.08", codedWidth: 16, codedHeight: 16 };
      await film.add(picture, { decoderConfig });
    }
    at += duration;
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

type Size = "known" | "unknown";

/** An element of EBML, its size in eight bytes. */
function element(id: string, body: Buffer, size: Size = "known"): Buffer {
  const bytes = Buffer.alloc(8, 0xff);
  if (size === "known") bytes.writeBigUInt64BE(BigInt(body.length) | (1n << 56n));
  else bytes[0] = 1;
  return Buffer.concat([Buffer.from(id, "hex"), bytes, body]);
}

/** A WebM with clusters of ten packets and Cues behind them, or before. */
function webm(size: Size, block: "SimpleBlock" | "BlockGroup", cues: "behind" | "before"): Buffer {
  const of = (id: string, ...parts: Buffer[]) => element(id, Buffer.concat(parts));
  const byte = (id: string, value: number) => of(id, Buffer.from([value]));
  const packets = opus?.packets ?? [];
  const { description } = opus?.config ?? {};
  const head = Buffer.from(description as Uint8Array);
  const about = [byte("d7", 1), byte("73c5", 1), byte("83", 2), of("86", Buffer.from("A_OPUS"))];
  const tracks = of("1654ae6b", of("ae", ...about, of("63a2", head), of("e1", byte("9f", 1))));
  const clusters: Buffer[] = [];
  for (let at = 0; at < packets.length; at += 10) {
    const blocks = packets.slice(at, at + 10).map(({ data }, index) => {
      const body = Buffer.concat([Buffer.from([0x81, 0, index * 20, 0]), data]);
      if (block === "BlockGroup") return of("a0", of("a1", body), byte("9b", 20));
      body[3] = 0x80;
      return of("a3", body);
    });
    const time = Buffer.alloc(2);
    time.writeUInt16BE(at * 20);
    clusters.push(element("1f43b675", Buffer.concat([of("e7", time), ...blocks]), size));
  }
  const scale = of("1549a966", of("2ad7b1", Buffer.from([0x0f, 0x42, 0x40])));
  const inFront = Buffer.concat([scale, tracks]);
  let place = inFront.length;
  const pointsOf = (before: number) => {
    place = inFront.length + before;
    return clusters.map((cluster, index) => {
      const at = Buffer.alloc(4);
      at.writeUInt32BE(place);
      place += cluster.length;
      return of("bb", byte("b3", index * 200), of("b7", byte("f7", 1), of("f1", at)));
    });
  };
  const cuesBytes = of("1c53bb6b", ...pointsOf(0)).length;
  const index = of("1c53bb6b", ...pointsOf(cues === "before" ? cuesBytes : 0));
  const parts = cues === "before" ? [index, ...clusters] : [...clusters, index];
  const type = of("1a45dfa3", of("4282", Buffer.from("webm")));
  return Buffer.concat([type, element("18538067", Buffer.concat([inFront, ...parts]), size)]);
}

/** Where each packet ends, in files that hold them as they are and one behind the other. */
function endsOf(file: Buffer, packets: readonly EncodedPacket[]): number[] {
  let at = 0;
  return packets.map(({ data }) => {
    at = file.indexOf(data, at) + data.length;
    return at;
  });
}

const hexOf = (packets: readonly EncodedPacket[]) =>
  packets.map(({ data }) => Buffer.from(data).toString("hex"));

describe("of a sound that is cut short each packet before the cut is taken", () => {
  test.each<[string, () => Buffer | Promise<Buffer>]>([
    ["WebM with sizes, simple blocks, Cues behind", () => webm("known", "SimpleBlock", "behind")],
    ["WebM with sizes, simple blocks, Cues before", () => webm("known", "SimpleBlock", "before")],
    ["WebM with sizes, groups of blocks", () => webm("known", "BlockGroup", "behind")],
    ["WebM without sizes, simple blocks", () => webm("unknown", "SimpleBlock", "behind")],
    ["WebM without sizes, groups of blocks", () => webm("unknown", "BlockGroup", "behind")],
    ["WebM of another writer", () => written(new WebMOutputFormat(), opus)],
    [
      "WebM of another writer, as it records",
      () => written(new WebMOutputFormat({ appendOnly: true }), opus),
    ],
    [
      "WebM with large pictures",
      () => written(new WebMOutputFormat(), opus, { times: 1, pictures: 90_000 }),
    ],
    ["Ogg with Opus", () => written(new OggOutputFormat(), opus)],
    ["Ogg with Vorbis", () => written(new OggOutputFormat(), vorbis)],
    [
      "M4A with its index before",
      () => written(new Mp4OutputFormat({ fastStart: "in-memory" }), aac),
    ],
    [
      "MP4 with Opus and large pictures",
      () => written(new Mp4OutputFormat({ fastStart: "in-memory" }), opus, { pictures: 9_000 }),
    ],
    ["MP4 in fragments", () => written(new Mp4OutputFormat({ fastStart: "fragmented" }), aac)],
  ])("%s", { timeout: 120_000 }, async (_, make) => {
    const file = await make();
    const all = (await read(file)).packets;
    const ends = endsOf(file, all);
    const whole = await takeSound(new Uint8Array(file));
    let before = 0;
    const first = (ends[1] ?? 0) + 1;
    // Each end of a packet, the bytes beside it, and places between.
    const cuts = new Set(ends.flatMap((end) => [end - 1, end, end + 1, end + 9, end + 30]));
    for (let at = first; at < file.length; at += Math.ceil(file.length / 200)) cuts.add(at);
    for (const cut of [...cuts].sort((a, b) => a - b)) {
      if (cut < first || cut >= file.length) continue;
      const taken = await takeSound(new Uint8Array(file.subarray(0, cut)));
      if (!taken) throw new Error(`refused at ${cut} of ${file.length}`);
      const count = ends.filter((end) => end <= cut).length;
      expect(hexOf((await read(taken.bytes)).packets)).toEqual(hexOf(all.slice(0, count)));
      expect(taken.seconds).toBeGreaterThanOrEqual(before);
      expect(taken.seconds).toBeLessThanOrEqual(whole?.seconds ?? 0);
      before = taken.seconds;
    }
  });
});

test.each([
  "mp3",
  "mp3 without facts",
  "wav of 16 bits",
  "wav of 24 bits",
  "wav of floats",
  "flac",
])("%s that is cut short is taken up to the cut", async (name) => {
  const file = new Uint8Array(Buffer.from(encoded[name] ?? "", "base64"));
  const whole = await takeSound(file.slice());
  for (const part of [0.99, 0.9, 0.75, 0.6]) {
    const taken = await takeSound(file.slice(0, file.length * part));
    expect(taken?.seconds).toBeGreaterThan(0);
    expect(taken?.seconds).toBeLessThanOrEqual(whole?.seconds ?? 0);
  }
});

test("what has no packet before the cut is refused", async () => {
  for (const file of [
    webm("known", "SimpleBlock", "behind"),
    await written(new OggOutputFormat(), vorbis),
    await written(new Mp4OutputFormat({ fastStart: "in-memory" }), aac),
    await written(new Mp4OutputFormat({ fastStart: "fragmented" }), aac),
  ]) {
    const [end = 0] = endsOf(file, (await read(file)).packets);
    for (const cut of [end - 1, end >> 1, 40, 12, 5]) {
      const taken = await takeSound(new Uint8Array(file.subarray(0, cut))).catch(() => undefined);
      expect(taken).toBeUndefined();
    }
  }
});

test.each(["ogg with opus", "ogg with vorbis"])(
  "%s of two streams that is cut short in the second one's head is the first one",
  async (name) => {
    const stream = Buffer.from(encoded[name] ?? "", "base64");
    const both = Buffer.concat([stream, stream]);
    const first = await takeSound(new Uint8Array(stream));
    const head = stream.lastIndexOf("OggS");
    for (let cut = stream.length; cut <= stream.length + Math.min(head, 3_000); cut += 7) {
      const taken = await takeSound(new Uint8Array(both.subarray(0, cut)));
      if (!taken) throw new Error(`refused at ${cut} of ${both.length}`);
      expect(taken.seconds).toBeGreaterThanOrEqual(first?.seconds ?? 1);
      expect(hexOf((await read(taken.bytes)).packets).length).toBeGreaterThan(0);
    }
  },
);
