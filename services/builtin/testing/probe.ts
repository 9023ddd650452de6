// Reads just enough of MP4 and MP3 files for the tests to judge them without a decoder.

/** A box of an MP4 with the boxes inside it. */
export type Box = {
  readonly type: string;
  readonly start: number;
  readonly body: DataView;
  readonly children: readonly Box[];
};

const HOLDERS = new Set(["moov", "trak", "mdia", "minf", "stbl"]);

/** All boxes of a file, in order. Throws where a box does not end inside its parent. */
export function readBoxes(bytes: Uint8Array, start = 0, end = bytes.byteLength): Box[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const boxes: Box[] = [];
  for (let at = start; at < end; ) {
    const size = view.getUint32(at);
    if (size < 8 || at + size > end) throw new RangeError(`a box at ${at} has size ${size}`);
    const type = text(view, at + 4);
    const body = new DataView(bytes.buffer, bytes.byteOffset + at + 8, size - 8);
    const children = HOLDERS.has(type) ? readBoxes(bytes, at + 8, at + size) : [];
    boxes.push({ type, start: at, body, children });
    at += size;
  }
  return boxes;
}

/** The first box at a path such as `moov/mvhd`. */
export function boxAt(boxes: readonly Box[], path: string): Box {
  let level = boxes;
  let found: Box | undefined;
  for (const type of path.split("/")) {
    found = level.find((box) => box.type === type);
    if (found === undefined) throw new RangeError(`no box ${path}`);
    level = found.children;
  }
  return found as Box;
}

/** The facts that an MP4 states. */
export type Mp4Facts = {
  /** The index comes before the media, so the file plays while it loads. */
  readonly fastStart: boolean;
  readonly durationSeconds: number;
  readonly createdAt: number;
  readonly tracks: readonly Mp4Track[];
};

export type Mp4Track = {
  readonly handler: string;
  readonly codec: string;
  readonly durationSeconds: number;
  readonly sampleCount: number;
  /** Samples where a player may begin, from 1. Undefined: at any. */
  readonly keySamples: readonly number[] | undefined;
  /** Size of the frames. */
  readonly width: number;
  readonly height: number;
  /** Facts of the audio. */
  readonly channels: number;
};

/** Reads the facts of an MP4 whose headers are of version 0. */
export function readMp4(bytes: Uint8Array): Mp4Facts {
  const boxes = readBoxes(bytes);
  const order = boxes.map(({ type }) => type);
  const header = boxAt(boxes, "moov/mvhd").body;
  const tracks = boxAt(boxes, "moov").children.filter(({ type }) => type === "trak");
  return {
    fastStart: order.indexOf("moov") < order.indexOf("mdat"),
    durationSeconds: header.getUint32(16) / header.getUint32(12),
    createdAt: header.getUint32(4),
    tracks: tracks.map((track): Mp4Track => {
      const media = boxAt(track.children, "mdia/mdhd").body;
      const entry = boxAt(track.children, "mdia/minf/stbl/stsd").body;
      return {
        handler: text(boxAt(track.children, "mdia/hdlr").body, 8),
        codec: text(entry, 12),
        durationSeconds: media.getUint32(16) / media.getUint32(12),
        sampleCount: boxAt(track.children, "mdia/minf/stbl/stsz").body.getUint32(8),
        keySamples: keySamplesOf(boxAt(track.children, "mdia/minf/stbl")),
        width: entry.getUint16(8 + 8 + 24),
        height: entry.getUint16(8 + 8 + 26),
        channels: entry.getUint16(8 + 8 + 16),
      };
    }),
  };
}

function keySamplesOf(table: Box): number[] | undefined {
  const sync = table.children.find(({ type }) => type === "stss")?.body;
  if (sync === undefined) return undefined;
  return Array.from({ length: sync.getUint32(4) }, (_, index) => sync.getUint32(8 + 4 * index));
}

/** The sums over the frames of an MP3. */
export type Mp3Facts = {
  readonly durationSeconds: number;
  readonly sampleRate: number;
  readonly channels: number;
  readonly frameCount: number;
};

const KBPS_MPEG1 = [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const KBPS_MPEG2 = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** Walks all frames of an MP3 (layer III, MPEG 1 or 2). Throws where a frame does not follow. */
export function readMp3(bytes: Uint8Array): Mp3Facts {
  let at = 0;
  let frameCount = 0;
  let sampleRate = 0;
  let channels = 0;
  let samples = 0;
  while (at + 4 <= bytes.length) {
    const [first = 0, second = 0, third = 0, fourth = 0] = bytes.subarray(at, at + 4);
    if (first !== 0xff || (second & 0xe6) !== 0xe2) throw new RangeError(`no frame at ${at}`);
    const mpeg1 = (second & 0x18) === 0x18;
    const kbps = (mpeg1 ? KBPS_MPEG1 : KBPS_MPEG2)[third >> 4] ?? 0;
    sampleRate = ([44_100, 48_000, 32_000][(third >> 2) & 3] ?? 0) / (mpeg1 ? 1 : 2);
    channels = fourth >> 6 === 3 ? 1 : 2;
    const perFrame = mpeg1 ? 1152 : 576;
    at += Math.floor(((perFrame / 8) * kbps * 1000) / sampleRate) + ((third >> 1) & 1);
    samples += perFrame;
    frameCount++;
  }
  return { durationSeconds: samples / sampleRate, sampleRate, channels, frameCount };
}

function text(view: DataView, at: number): string {
  return String.fromCharCode(...[0, 1, 2, 3].map((offset) => view.getUint8(at + offset)));
}
