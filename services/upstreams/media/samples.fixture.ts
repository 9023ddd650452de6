// Small videos, audio and images in every format, for tests of drivers and of what verifies their files.

import sharp from "sharp";
import { crc8 } from "#kit/sound/flac.ts";
import { pcmRate, type SoundFormat } from "#kit/sound/formats.ts";

/** The properties of a sample video. */
export interface SampleVideo {
  seconds: number;
  width: number;
  height: number;
  codec: string;
  /** Frames a second. */
  rate: number;
  /** Bytes of each frame. */
  frameBytes: number;
  /** The index comes behind the media. */
  isIndexLast: boolean;
  /** Frames are listed in fragments of a second each, and not in the index. */
  isFragmented: boolean;
}

/** An MP4 with a right index and frames of noise. Default: 6 s of 320 by 180. */
export function sampleMp4(asked: Partial<SampleVideo> = {}): Buffer {
  const video: SampleVideo = {
    ...{ seconds: 6, width: 320, height: 180, codec: "avc1", rate: 10, frameBytes: 200 },
    ...{ isIndexLast: false, isFragmented: false },
    ...asked,
  };
  const type = mp4Box("ftyp", ascii("isom"), uint32s(512), ascii("isomavc1mp41"));
  if (video.isFragmented) return Buffer.concat([type, sampleIndex(video), ...fragments(video)]);
  const media = mp4Box("mdat", Buffer.alloc(video.seconds * video.rate * video.frameBytes, 7));
  const index = sampleIndex(video);
  const rest = video.isIndexLast ? [mp4Box("free"), media, index] : [index, media];
  return Buffer.concat([type, ...rest]);
}

/** A whole box. */
export function mp4Box(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([uint32s(body.length + 8), ascii(type), body]);
}

/** An MP3 of silent frames, 128 kbit/s at 44.1 kHz, about as long as requested. */
export function sampleMp3(seconds = 2): Buffer<ArrayBuffer> {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb9064);
  const frames = Math.round((seconds * 44_100) / 1152);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
}

/** A WAV of silence: 16 bits, one channel. */
export function sampleWav(seconds = 2, rate = 8_000): Buffer {
  const media = Buffer.alloc(seconds * rate * 2);
  const head = Buffer.alloc(44);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(36 + media.length, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(media.length, 40);
  return Buffer.concat([head, media]);
}

/** Silence in a format of speech, about as long as requested. */
export function sampleSound(format: SoundFormat, seconds = 2): Buffer {
  switch (format) {
    case "mp3":
      return sampleMp3(seconds);
    case "opus":
      return sampleOpus(seconds);
    case "aac":
      return sampleAac(seconds);
    case "flac":
      return sampleFlac(seconds);
    case "wav":
      return sampleWav(seconds, pcmRate);
    case "pcm":
      return Buffer.alloc(seconds * pcmRate * 2);
  }
}

/** Opus in Ogg: packets of 20 ms, fifty a page. Pages have no checksum. */
function sampleOpus(seconds: number): Buffer {
  const head = Buffer.from("OpusHead\x01\x01\0\0\x80\xbb\0\0\0\0\0", "latin1");
  const tags = Buffer.from("OpusTags\0\0\0\0\0\0\0\0", "latin1");
  const second = Array.from({ length: 50 }, () => Buffer.from([0xf8, 0xff, 0xfe]));
  const pages = [[head], [tags], ...Array.from({ length: seconds }, () => second)];
  return Buffer.concat(
    pages.flatMap((packets, index) => {
      const page = Buffer.alloc(27);
      page.write("OggS");
      page[5] = index === 0 ? 2 : 0;
      page.writeUInt32LE(1, 14);
      page.writeUInt32LE(index, 18);
      page[26] = packets.length;
      return [page, Buffer.from(packets.map(({ length }) => length)), ...packets];
    }),
  );
}

/** ADTS frames of AAC, one channel at 24 kHz. */
function sampleAac(seconds: number): Buffer {
  const frame = Buffer.alloc(16);
  frame.set([0xff, 0xf1, 0x58, 0x40, frame.length >> 3, ((frame.length & 7) << 5) | 0x1f, 0xfc]);
  return Buffer.concat(Array(Math.round((seconds * pcmRate) / 1_024)).fill(frame));
}

/** FLAC frames of 4,096 samples, one channel at 24 kHz, with no real content. */
function sampleFlac(seconds: number): Buffer {
  const facts = Buffer.alloc(34);
  facts.writeUIntBE(pcmRate << 4, 10, 3);
  const head = Buffer.concat([ascii("fLaC"), Buffer.from([0x80, 0, 0, facts.length]), facts]);
  const frames = Array.from({ length: Math.round((seconds * pcmRate) / 4_096) }, (_, index) => {
    const start = Buffer.from([0xff, 0xf8, 0xc7, 0x08, index & 127]);
    return Buffer.concat([start, Buffer.from([crc8(start)]), Buffer.alloc(20)]);
  });
  return Buffer.concat([head, ...frames]);
}

/** A PNG of one colour. */
export function samplePng(width = 64, height = 48): Promise<Buffer> {
  return sharp({ create: { width, height, channels: 3, background: "#456" } })
    .png()
    .toBuffer();
}

const timescale = 1000;

function sampleIndex(video: SampleVideo): Buffer {
  const { seconds, width, height, isFragmented } = video;
  const duration = isFragmented ? 0 : seconds * timescale;
  const header = [0, 0, 0, 1, 0, duration, 0, 0, 0, 0, ...Array(9).fill(0)];
  const sound = mp4Box("trak", mp4Box("mdia", handler("soun")));
  const picture = mp4Box(
    "trak",
    mp4Box("tkhd", uint32s(...header, width * 65_536, height * 65_536)),
    mp4Box(
      "mdia",
      mp4Box("mdhd", uint32s(0, 0, 0, timescale, duration, 0)),
      handler("vide"),
      mp4Box("minf", mp4Box("stbl", description(video), frameSizes(video))),
    ),
  );
  const extension = mp4Box("mvex", mp4Box("trex", uint32s(0, 1, 1, timescale / video.rate, 0, 0)));
  const movie = mp4Box("mvhd", uint32s(0, 0, 0, timescale, duration, ...Array(20).fill(0)));
  return mp4Box("moov", movie, sound, picture, ...(isFragmented ? [extension] : []));
}

function description({ codec, width, height }: SampleVideo): Buffer {
  const entry = Buffer.alloc(78);
  entry.writeUInt16BE(width, 24);
  entry.writeUInt16BE(height, 26);
  return mp4Box("stsd", uint32s(0, 1), mp4Box(codec, entry));
}

function frameSizes({ seconds, rate, frameBytes, isFragmented }: SampleVideo): Buffer {
  const frames = isFragmented ? 0 : seconds * rate;
  return mp4Box("stsz", uint32s(0, 0, frames, ...Array(frames).fill(frameBytes)));
}

function fragments({ seconds, rate, frameBytes }: SampleVideo): Buffer[] {
  const each = mp4Box(
    "moof",
    mp4Box("traf", mp4Box("tfhd", uint32s(0, 1)), mp4Box("trun", uint32s(0, rate))),
  );
  const media = mp4Box("mdat", Buffer.alloc(rate * frameBytes, 7));
  return Array.from({ length: seconds }, () => [each, media]).flat();
}

function handler(kind: string): Buffer {
  return mp4Box("hdlr", uint32s(0, 0), ascii(kind), uint32s(0, 0, 0, 0));
}

function ascii(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function uint32s(...values: number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value, at * 4);
  return bytes;
}
