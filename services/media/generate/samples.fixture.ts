import sharp from "sharp";

/** What a sample video is like. */
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
  /** Frames are listed in fragments of a second each, in place of the index. */
  isFragmented: boolean;
}

/** An MP4 with a right index; its frames are noise. Default: 6 s of 320 by 180. */
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

/** An MP3 of silent frames, 128 kbit/s at 44.1 kHz, about as long as asked for. */
export function sampleMp3(seconds = 2): Buffer {
  const frame = Buffer.alloc(417);
  frame.writeUInt32BE(0xfffb9064);
  const frames = Math.round((seconds * 44_100) / 1152);
  return Buffer.concat(Array.from({ length: frames }, () => frame));
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
