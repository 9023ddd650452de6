import {
  BufferTarget,
  EncodedAudioPacketSource,
  EncodedPacket,
  Mp4OutputFormat,
  Output,
  WebMOutputFormat,
} from "mediabunny";
import { afterAll, describe, expect, test } from "vitest";
import { sampleMp3, sampleWav } from "../../services/upstreams/media/samples.fixture.ts";
import { askedOf } from "../e2e/media-world.ts";
import { ownWorldOnly, startWorld } from "../e2e/world.ts";

// Audio is charged by the upstream's seconds, or by its container's where these are more. The charge is never more than the hold for its
// bytes.
const world = await startWorld({
  catalog: (usual) => ({
    ...usual,
    models: [
      ...usual.models,
      {
        ...{ id: "ears", kind: "transcription", upstream: "main", upstreamModel: "up-ears" },
        ...{ maxSeconds: 600, pricing: { usdMicrosPerMinute: 60_000 } },
      },
    ],
  }),
});
afterAll(() => world[Symbol.asyncDispose]());
ownWorldOnly();

/** The price of one second in USD micros. */
const secondCosts = 1_000;

/** Has a file transcribed by an upstream that reports `played` seconds. Answers the status and the charge. */
async function transcribe(file: Uint8Array, played: number) {
  const payer = await world.caller();
  const seen = world.play({ kind: "json", body: { text: "Good morning.", duration: played } });
  const form = new FormData();
  form.set("model", "ears");
  form.set("file", new Blob([new Uint8Array(file)]), "sound");
  const response = await fetch(`${world.baseUrl}/audio/transcriptions`, {
    ...{ method: "POST", body: form, headers: { authorization: `Bearer ${payer.key}` } },
  });
  const bytes = Buffer.from(await response.arrayBuffer());
  const { status, json } = askedOf({ status: response.status, headers: response.headers, bytes });
  const { monthSpend } = await payer.settled();
  return { status, code: json.error?.code, sent: seen.length, seconds: monthSpend / secondCosts };
}

// ── Audio of a number of seconds, in the form of real encoders ──────────────────────────────────────────────────────

const wav = (seconds: number) => sampleWav(seconds);

/** Frames of FLAC of 4,096 samples at 8 kHz, with correct heads and no content. */
function flac(seconds: number, { rate = 8_000, total = 0, rateCode = 4 } = {}): Buffer {
  const facts = Buffer.alloc(38);
  facts.writeUInt32BE(0x80_00_00_22, 0);
  facts.writeUIntBE(rate * 16, 14, 3);
  facts.writeUInt32BE(total, 18);
  const frame = (number: number) => {
    // 4,096 samples, 8 kHz, one channel, 16 bits.
    const own = rateCode === 12 ? [0] : [];
    const head = Buffer.from([0xff, 0xf8, 0xc0 | rateCode, 0x08, number % 128, ...own]);
    return Buffer.concat([head, Buffer.from([crc8(head)]), Buffer.alloc(20)]);
  };
  const frames = Array.from({ length: Math.ceil((seconds * 8_000) / 4_096) }, (_, at) => frame(at));
  return Buffer.concat([Buffer.from("fLaC"), facts, ...frames]);
}

function crc8(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x80 ? ((crc << 1) ^ 0x07) & 0xff : crc << 1;
  }
  return crc;
}

/** A silent unit of AAC: one channel, 64 ms at 16 kHz. */
const silentUnit = Buffer.from([0x00, 0xc8, 0x00, 0x07]);
/** A packet of Opus: SILK, 20 ms. */
const opusPacket = Buffer.from([0x08, 1, 2, 3, 4, 5]);

/** Ogg with Opus, 50 packets a page. `granule` is the end of a page that ends after this number of samples. */
function ogg(seconds: number, granule = (samples: number) => samples): Buffer {
  const head = Buffer.alloc(19);
  head.write("OpusHead\u0001\u0001");
  head.writeUInt32LE(48_000, 12);
  const tags = Buffer.concat([Buffer.from("OpusTags"), Buffer.alloc(8)]);
  const pages = [oggPage([head], 0, 2), oggPage([tags], 0, 0)];
  for (let second = 1; second <= seconds; second++) {
    pages.push(oggPage(Array<Buffer>(50).fill(opusPacket), granule(second * 48_000), 0));
  }
  return Buffer.concat(pages);
}

function oggPage(packets: readonly Buffer[], granule: number, flags: number): Buffer {
  const head = Buffer.alloc(27);
  head.write("OggS");
  head[5] = flags;
  head.writeBigInt64LE(BigInt(granule), 6);
  head[26] = packets.length;
  const page = Buffer.concat([head, Buffer.from(packets.map(({ length }) => length)), ...packets]);
  page.writeUInt32LE(oggCrc(page), 22);
  return page;
}

function oggCrc(bytes: Buffer): number {
  let crc = 0;
  for (const byte of bytes) {
    crc ^= byte << 24;
    for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  }
  return crc >>> 0;
}

/** M4A with AAC of 16 kHz, 64 ms a packet. */
const m4a = (seconds: number, step = 0.064) =>
  contained(new Mp4OutputFormat(), {
    ...{ codec: "aac", config: "mp4a.40.2", description: Uint8Array.from([0x14, 0x08]) },
    ...{ rate: 16_000, packet: silentUnit, packets: seconds / 0.064, step },
  });
/** WebM with Opus. */
const webm = (seconds: number, step = 0.02) =>
  contained(new WebMOutputFormat(), {
    ...{ codec: "opus", config: "opus", description: undefined },
    ...{ rate: 48_000, packet: opusPacket, packets: seconds / 0.02, step },
  });

async function contained(
  format: Mp4OutputFormat | WebMOutputFormat,
  sound: {
    codec: "aac" | "opus";
    config: string;
    description: Uint8Array | undefined;
    rate: number;
    packet: Buffer;
    packets: number;
    /** Seconds from one packet to the next, as written in the file. */
    step: number;
  },
): Promise<Buffer> {
  const { codec, config, description, rate, packet, packets, step } = sound;
  const target = new BufferTarget();
  const output = new Output({ format, target });
  const source = new EncodedAudioPacketSource(codec);
  output.addAudioTrack(source);
  await output.start();
  const decoderConfig = {
    ...{ codec: config, numberOfChannels: 1, sampleRate: rate },
    ...(description ? { description } : {}),
  };
  for (let at = 0; at < Math.round(packets); at++) {
    const one = new EncodedPacket(packet, "key", at * step, step);
    await source.add(one, { decoderConfig });
  }
  await output.finalize();
  return Buffer.from(target.buffer ?? new ArrayBuffer(0));
}

/** An MP3 with all its frames at one rate: 8 kbit/s at 8 kHz, 72 ms each. */
const slowMp3 = (seconds: number) => {
  const frame = Buffer.alloc(72);
  frame.writeUInt32BE(0xffe318c4);
  return Buffer.concat(Array<Buffer>(Math.round(seconds / 0.072)).fill(frame));
};
const id3 = (body: Buffer) => {
  const head = Buffer.from("ID3\u0004\u0000\u0000\u0000\u0000\u0000\u0000", "latin1");
  for (let at = 0; at < 4; at++) head[6 + at] = (body.length >>> (21 - 7 * at)) & 127;
  return Buffer.concat([head, body]);
};
const edited = (bytes: Buffer, edit: (copy: Buffer) => void) => {
  const copy = Buffer.from(bytes);
  edit(copy);
  return copy;
};

describe("an honest sound is charged as it was played", () => {
  test.each([
    ["WAV", () => wav(30)],
    [
      "WAV with tags behind it",
      () => Buffer.concat([wav(30), Buffer.from("LIST\u0004\0\0\0INFO")]),
    ],
    ["MP3", () => sampleMp3(30)],
    [
      "MP3 with tags",
      () =>
        Buffer.concat([
          id3(Buffer.alloc(5_000, 0xff)),
          slowMp3(30),
          Buffer.from("TAG".padEnd(128)),
        ]),
    ],
    ["FLAC", () => flac(30)],
    ["Ogg", () => ogg(30)],
    ["M4A", () => m4a(30)],
    ["WebM", () => webm(30)],
  ] as const)("%s", async (_, make) => {
    const file = await make();
    const { status, sent, seconds } = await transcribe(file, 30);
    expect([status, sent]).toEqual([200, 1]);
    // Whole frames. The last one lasts longer than the audio.
    expect(seconds).toBeGreaterThanOrEqual(30);
    expect(seconds).toBeLessThan(30.3);
  });
});

describe("a file that says that it is shorter is charged for what is played of it, or refused", () => {
  test.each([
    ["WAV, two chunks of samples", () => Buffer.concat([wav(1), wav(60).subarray(36)])],
    ["WAV, samples said to be few", () => edited(wav(60), (wav) => wav.writeUInt32LE(3_200, 40))],
    ["WAV, blocks said to be large", () => edited(wav(60), (wav) => wav.writeUInt16LE(64, 32))],
    ["WAV, samples said to be wide", () => edited(wav(60), (wav) => wav.writeUInt16LE(32, 34))],
    ["WAV, two heads", () => Buffer.concat([wav(1).subarray(0, 36), wav(60).subarray(12)])],
    ["MP3, a fast first frame", () => Buffer.concat([sampleMp3(0.05), slowMp3(60)])],
    ["MP3, each frame one of facts", () => infoFrames(60)],
    [
      "MP3, two with a tag between them",
      () => Buffer.concat([sampleMp3(1), id3(Buffer.alloc(10)), sampleMp3(60)]),
    ],
    ["MP3, frames in a tag", () => Buffer.concat([sampleMp3(1), id3(slowMp3(60)), sampleMp3(1)])],
    [
      "MP3, frames behind ID3v1",
      () => Buffer.concat([sampleMp3(1), Buffer.from("TAG".padEnd(128)), sampleMp3(60)]),
    ],
    ["FLAC, few samples said", () => flac(60, { total: 16_000 })],
    ["FLAC, a fast file of slow frames", () => flac(60, { rate: 655_350 })],
    ["Ogg, two together", () => Buffer.concat([ogg(1), ogg(60)])],
    ["Ogg, times that stand still", () => ogg(60, () => 48_000)],
    ["WebM, times that hardly pass", () => webm(60, 0.001)],
    ["AAC in frames of its own", () => adts(60)],
    ["WAV, frames of MP3 as samples", () => wavOf(slowMp3(60), { bits: 16 })],
    ["WAV, a rate that no person hears", () => wavOf(Buffer.alloc(480_000), { rate: 0xffff_fff0 })],
    [
      "WAV, A-law of eight bytes a sample",
      () => wavOf(Buffer.alloc(480_000), { format: 6, bits: 64 }),
    ],
    [
      "MP3, a tag that is none",
      () => Buffer.concat([id3(slowMp3(60)).fill(0xff, 3, 4), slowMp3(1)]),
    ],
    ["MP3, a tag of another kind before it", () => Buffer.concat([ape(slowMp3(60)), slowMp3(1)])],
    [
      "MP3, frames of layer II in a tag",
      () => Buffer.concat([slowMp3(1), ape(layerTwo(60)), slowMp3(1)]),
    ],
    ["FLAC, frames of no rate", () => flac(60, { rateCode: 12 })],
    ["Ogg, pages that take the next one's packet", () => Buffer.concat([ogg(1), swallowed(60)])],
    [
      "M4A, a track of another kind",
      async () => edited(await m4a(60), (file) => file.write("hint", file.indexOf("soun"))),
    ],
  ] as const)("%s", async (_, make) => {
    const file = await make();
    const { status, code, sent, seconds } = await transcribe(file, 60);
    if (status === 200) expect(seconds).toBeGreaterThanOrEqual(60);
    else
      expect({ status, code, sent, seconds }).toEqual({
        status: 400,
        code: "invalid_value",
        sent: 0,
        seconds: 0,
      });
  });
});

describe("silence that takes fewer bytes than speech, in a file that says that it is shorter, is charged up to the hold", () => {
  test.each([
    ["FLAC, two together", () => Buffer.concat([flac(1), flac(60)]), 1_000],
    ["M4A, times that hardly pass", () => m4a(60, 0.001), 750],
  ] as const)("%s", async (_, make, bytesASecond) => {
    const file = await make();
    const { status, seconds } = await transcribe(file, 60);
    expect(status).toBe(200);
    expect(seconds).toBeCloseTo(Math.ceil((file.length / bytesASecond) * (1_000 / 60)) * 0.06, 9);
  });
});

test("a file that says that it is longer is charged what it says", async () => {
  // Four samples a second.
  const slow = wavOf(Buffer.alloc(400), { rate: 4 });
  expect(await transcribe(slow, 1)).toMatchObject({ status: 200, seconds: 100.02 });
});

/** A WAV of any bytes. */
function wavOf(samples: Buffer, { format = 1, bits = 8, rate = 8_000 } = {}): Buffer {
  const head = Buffer.from(wav(0).subarray(0, 44));
  head.writeUInt32LE(36 + samples.length, 4);
  head.writeUInt16LE(format, 20);
  head.writeUInt32LE(rate, 24);
  head.writeUInt16LE(bits / 8, 32);
  head.writeUInt16LE(bits, 34);
  head.writeUInt32LE(samples.length, 40);
  return Buffer.concat([head, samples]);
}

/** An APE tag with a body, and its head before it. */
function ape(body: Buffer): Buffer {
  const head = Buffer.alloc(32);
  head.write("APETAGEX");
  head.writeUInt32LE(body.length, 12);
  return Buffer.concat([head, body]);
}

/** Frames of layer II, 72 ms each. */
function layerTwo(seconds: number): Buffer {
  const frame = Buffer.alloc(72);
  frame.writeUInt32BE(0xfff518c4);
  return Buffer.concat(Array<Buffer>(Math.round(seconds / 0.072)).fill(frame));
}

/** Packets of Opus, each after a page that begins a packet and is otherwise invalid. Decoders skip that page. */
function swallowed(seconds: number): Buffer {
  const begun = oggPage([Buffer.alloc(255, 3)], 0, 0);
  begun.writeUInt32LE(0, 22);
  const packet = oggPage([Buffer.from([0x1b, 6, 0, 0])], 0, 0);
  return Buffer.concat(
    Array<Buffer[]>(seconds * 8)
      .fill([begun, packet])
      .flat(),
  );
}

/** An MP3 whose frames all look like the one with the length. */
function infoFrames(seconds: number): Buffer {
  return edited(sampleMp3(seconds), (frames) => {
    for (let at = 0; at + 417 <= frames.length; at += 417) frames.write("Xing", at + 36);
  });
}

/** Frames of AAC without a container: 128 ms each. */
function adts(seconds: number): Buffer {
  const frame = Buffer.alloc(32);
  frame.writeUIntBE(0xfff16c40_0400, 0, 6);
  return Buffer.concat(Array<Buffer>(Math.round(seconds / 0.128)).fill(frame));
}
