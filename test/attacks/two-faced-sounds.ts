import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  Mp4OutputFormat,
  Output,
} from "mediabunny";
import { mp4Box as box } from "../../services/upstreams/media/samples.fixture.ts";

// Sounds in which one reader finds a second, and another an hour.

/** A unit of AAC that sounds of nothing: one channel, 64 ms at 16 kHz. */
export const silentUnit = Buffer.from([0x00, 0xc8, 0x00, 0x07]);
/** Seconds of it. */
const unitSeconds = 0.064;
/** A packet of Opus of 120 ms: 48 frames of nothing. */
const opusPacket = Buffer.from([0xe3, 0x30]);

/** An M4A with its index behind its media, of so many packets. */
export async function m4aOf(packets: number, packet = silentUnit): Promise<Buffer> {
  const target = new BufferTarget();
  const output = new Output({ format: new Mp4OutputFormat({ fastStart: false }), target });
  const source = new EncodedAudioPacketSource("aac");
  output.addAudioTrack(source);
  await output.start();
  const facts = { codec: "mp4a.40.2", numberOfChannels: 1, sampleRate: 16_000 };
  const decoderConfig = { ...facts, description: Uint8Array.from([0x14, 0x08]) };
  for (let at = 0; at < packets; at++) {
    const one = new EncodedPacket(packet, "key", at * unitSeconds, unitSeconds);
    await source.add(one, { decoderConfig });
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

/** Boxes that stand behind each other. */
function boxesOf(bytes: Buffer): { name: string; body: Buffer; from: number }[] {
  const found: { name: string; body: Buffer; from: number }[] = [];
  for (let at = 0; at + 8 <= bytes.length; ) {
    const written = bytes.readUInt32BE(at);
    const name = bytes.toString("latin1", at + 4, at + 8);
    const size =
      written === 1 ? Number(bytes.readBigUInt64BE(at + 8)) : written || bytes.length - at;
    const head = written === 1 ? 16 : 8;
    found.push({ name, body: bytes.subarray(at + head, at + size), from: at + head });
    at += size;
  }
  return found;
}

function bodyOf(bytes: Buffer, ...path: string[]): Buffer {
  let body = bytes;
  for (const name of path) body = boxesOf(body).find((one) => one.name === name)?.body ?? body;
  return body;
}

/** The same boxes with another body at a path; undefined takes the box away. Those that were not there come last. */
function rebuilt(bytes: Buffer, path: string[], edit: (body: Buffer) => Buffer): Buffer {
  const [first = "", ...rest] = path;
  const inner = (body: Buffer) => (rest.length === 0 ? edit(body) : rebuilt(body, rest, edit));
  const boxes = boxesOf(bytes).map(({ name, body }) =>
    box(name, name === first ? inner(body) : body),
  );
  if (boxesOf(bytes).every(({ name }) => name !== first))
    boxes.push(box(first, inner(Buffer.alloc(0))));
  return Buffer.concat(boxes);
}

const uint32s = (...values: number[]) => {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4);
  return bytes;
};
const table = ["trak", "mdia", "minf", "stbl"];

/** An M4A that plays its track so many times. */
export async function m4aOfEdits(edits: number): Promise<Buffer> {
  const file = await m4aOf(50);
  const scale = bodyOf(file, "moov", "mvhd").readUInt32BE(12);
  const edit = [Math.round(50 * unitSeconds * scale), 0, 0x10000];
  const list = box("elst", uint32s(0, edits, ...Array<number[]>(edits).fill(edit).flat()));
  return rebuilt(file, ["moov", "trak", "edts"], () => list);
}

/** An M4A with an index of much more within a box of a name, before its own. */
export async function m4aWithin(name: string): Promise<Buffer> {
  const [small, large] = [await m4aOf(16), await m4aOf(940)];
  const mediaOf = (file: Buffer) => {
    const media = boxesOf(file).find((one) => one.name === "mdat");
    return { body: media?.body ?? Buffer.alloc(0), from: media?.from ?? 0 };
  };
  const moved = (file: Buffer, by: number) =>
    rebuilt(bodyOf(file, "moov"), [...table, "stco"], (body) => {
      const places = Buffer.from(body);
      for (let at = 8; at < places.length; at += 4) {
        places.writeUInt32BE(places.readUInt32BE(at) + by, at);
      }
      return places;
    });
  const type = box("ftyp", bodyOf(small, "ftyp"));
  const hidden = bodyOf(large, "moov");
  const freeAt = type.length + 16 + hidden.length + 8;
  const mediaAt = freeAt + mediaOf(large).body.length + 8;
  return Buffer.concat([
    type,
    box(name, box("moov", moved(large, freeAt - mediaOf(large).from))),
    box("free", mediaOf(large).body),
    box("mdat", mediaOf(small).body),
    box("moov", moved(small, mediaAt - mediaOf(small).from)),
  ]);
}

/** An M4A whose tables do not agree in how many packets there are. */
export async function m4aOfTables(names: string[]): Promise<Buffer> {
  const file = await m4aOf(940);
  const media = boxesOf(file).find(({ name }) => name === "mdat");
  const own = bodyOf(file, "moov", ...table);
  const tables: Record<string, Buffer> = {
    few: box("stts", uint32s(0, 1, 16, 1_024)),
    all: box("stts", uint32s(0, 1, 940, 1_024)),
    fewInChunk: box("stsc", uint32s(0, 1, 1, 16, 1)),
    allInChunk: box("stsc", uint32s(0, 1, 1, 940, 1)),
  };
  const body = Buffer.concat([
    box("stsd", bodyOf(own, "stsd")),
    ...names.map((name) => tables[name] ?? Buffer.alloc(0)),
    box("stsz", bodyOf(own, "stsz")),
    box("stco", uint32s(0, 1, media?.from ?? 0)),
  ]);
  return rebuilt(file, ["moov", ...table], () => body);
}

/** An element of EBML: its id in hexadecimal, its size in eight bytes. */
function element(id: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  const size = Buffer.alloc(8);
  size.writeBigUInt64BE(BigInt(body.length) | (1n << 56n));
  return Buffer.concat([Buffer.from(id, "hex"), size, body]);
}

/** A WebM of a second, with a broken element in its cluster and, behind that, half an hour. */
export function webmWithBehind(broken: string): Buffer {
  const head = Buffer.alloc(19);
  head.write("OpusHead\u0001\u0001");
  head.writeUInt32LE(48_000, 12);
  const byte = (value: number) => Buffer.from([value]);
  const rate = Buffer.alloc(8);
  rate.writeDoubleBE(48_000);
  const sound = element("e1", element("b5", rate), element("9f", byte(1)));
  const about = [element("d7", byte(1)), element("73c5", byte(1)), element("83", byte(2))];
  const codec = [element("86", Buffer.from("A_OPUS")), element("63a2", head)];
  const tracks = element("1654ae6b", element("ae", ...about, ...codec, sound));
  const scale = element("1549a966", element("2ad7b1", uint32s(1_000_000)));
  const block = (flags: number[], packets: Buffer[]) =>
    element("a3", Buffer.from([0x81, 0, 0, ...flags]), ...packets);
  const seen = Array.from({ length: 50 }, () => block([0x80], [Buffer.from("f8fffe", "hex")]));
  const hidden = Array.from({ length: 60 }, (_, at) =>
    element(
      "1f43b675",
      element("e7", uint32s(30_000 * (at + 1))),
      block([0x84, 249], Array<Buffer>(250).fill(opusPacket)),
    ),
  );
  const cluster = element(
    "1f43b675",
    element("e7", byte(0)),
    ...seen,
    Buffer.from(broken, "hex"),
    ...hidden,
  );
  const type = element("1a45dfa3", element("4282", Buffer.from("webm")));
  return Buffer.concat([type, element("18538067", scale, tracks, cluster)]);
}

/** Frames of MP3 of 72 ms: 8 kbit/s at 8 kHz. */
export function slowFrames(seconds: number): Buffer {
  const frame = Buffer.alloc(72);
  frame.writeUInt32BE(0xffe318c4);
  return Buffer.concat(Array<Buffer>(Math.round(seconds / 0.072)).fill(frame));
}

/** A WAV of 16 bits. */
export function wavOf(samples: Buffer, { channels = 2, rate = 384_000 } = {}): Buffer {
  const head = Buffer.alloc(44);
  head.write("RIFF");
  head.writeUInt32LE(36 + samples.length, 4);
  head.write("WAVEfmt ", 8);
  for (const [at, value] of [
    [16, 16],
    [24, rate],
    [28, rate * channels * 2],
    [40, samples.length],
  ]) {
    head.writeUInt32LE(value ?? 0, at);
  }
  for (const [at, value] of [
    [20, 1],
    [22, channels],
    [32, channels * 2],
    [34, 16],
  ]) {
    head.writeUInt16LE(value ?? 0, at);
  }
  head.write("data", 36);
  return Buffer.concat([head, samples]);
}

/** An MP3 of 320 kbit/s at 32 kHz whose frames hold these bytes, so far as they go. */
export function mp3Of(hidden: Buffer): Buffer {
  const frames: Buffer[] = [];
  for (let at = 0; at < Math.max(20 * 1_436, hidden.length); at += 1_436) {
    const frame = Buffer.alloc(1_440);
    frame.writeUInt32BE(0xfffbe8c4);
    frame.set(hidden.subarray(at, at + 1_436), 4);
    frames.push(frame);
  }
  return Buffer.concat(frames);
}

/**
 * What the most generous reader makes of a file: of several ways of reading it the longest, and all that looks like sound wherever it
 * stands.
 */
export function mostOf(bytes: Buffer): number {
  const start = bytes.toString("latin1", 0, 4);
  if (start === "OggS") return bytes.length === 0 ? 0 : secondsOfOgg(bytes);
  if (bytes.toString("latin1", 4, 8) === "ftyp") return secondsOfMp4(bytes);
  if (start === "RIFF") {
    const plain = (bytes.length - 44) / bytes.readUInt32LE(28);
    return Math.max(plain, secondsOfFrames(bytes.subarray(44)));
  }
  if (bytes.readUInt32BE(0) === 0x1a45dfa3) return countOf(bytes, opusPacket) * 0.12;
  return secondsOfFrames(bytes);
}

function countOf(bytes: Buffer, wanted: Buffer | string): number {
  let count = 0;
  for (let at = bytes.indexOf(wanted); at >= 0; at = bytes.indexOf(wanted, at + 1)) count++;
  return count;
}

/** Any index counts, by its table of sizes, as often as it is played, and each packet for as many units as it could hold. */
function secondsOfMp4(bytes: Buffer): number {
  let seconds = 0;
  for (let at = bytes.indexOf("stsz"); at >= 0; at = bytes.indexOf("stsz", at + 1)) {
    seconds += bytes.readUInt32BE(at + 12) * unitSeconds;
  }
  const edits = bytes.indexOf("elst");
  const times = edits < 0 ? 1 : bytes.readUInt32BE(edits + 8);
  return Math.max(seconds * times, countOf(bytes, silentUnit) * unitSeconds);
}

function secondsOfOgg(bytes: Buffer): number {
  let packets = -2;
  for (let at = 0; at < bytes.length; ) {
    const pieces = bytes.subarray(at + 27, at + 27 + (bytes[at + 26] ?? 0));
    packets += pieces.filter((piece) => piece < 255).length;
    at += 27 + pieces.length + pieces.reduce((sum, piece) => sum + piece, 0);
  }
  const long = countOf(bytes, opusPacket);
  return long * 0.12 + (packets - long) * 0.02;
}

/** Of layer III at 8 and at 32 kHz, which are those made here. */
function secondsOfFrames(bytes: Buffer): number {
  const slow = countOf(bytes, Buffer.from("ffe318c4", "hex")) * 0.072;
  return slow + countOf(bytes, Buffer.from("fffbe8c4", "hex")) * 0.036;
}
