// Finds compressed audio that lies in a file as if it were samples. Such audio plays longer than its bytes say.

/** Frames that follow each other. Real samples never look like this many. */
const framesInARow = 4;
/** This many words that begin frames are no chance. The lengths of such frames are deeper in them. */
const syncsInAll = 3;
/** The words of DTS, TrueHD, and the format that carries either over a wire for samples (IEC 61937), in both byte orders. */
const plainSyncs: ReadonlySet<number> = new Set([
  0x7ffe8001, 0xfe7f0180, 0x1fffe800, 0xff1f00e8, 0x64582025, 0xf8726fba, 0xf8726fbb, 0xf8724e1f,
  0x72f81f4e,
]);
/** Bytes that begin a frame: those of the words above, of MPEG and ADTS, of AC-3 in both byte orders, and of LOAS. */
const starts = new Uint8Array(256);
for (const sync of plainSyncs) starts[sync >>> 24] = 1;
for (const first of [0xff, 0x0b, 0x56]) starts[first] = 1;

/**
 * Do samples hold frames of a codec? Some recorders write DTS into WAVs as if it were samples. So libav looks for frames of all codecs
 * in samples, and plays them. Then the bytes of one second can hold minutes.
 */
export function hasFramesOfCodec(samples: Buffer): boolean {
  let syncs = 0;
  for (let at = 0; at + 8 <= samples.length; at++) {
    const first = samples[at] ?? 0;
    if (starts[first] === 0) continue;
    if (plainSyncs.has(samples.readUInt32BE(at)) && ++syncs >= syncsInAll) return true;
    let [end, frames] = [at, 0];
    for (let bytes = frameBytes(samples, end); bytes > 0; bytes = frameBytes(samples, end)) {
      end += bytes;
      if (++frames >= framesInARow) return true;
    }
  }
  return false;
}

/** Kilobits a second of MPEG audio: by version 1 or the others, and by layer. */
const kilobits: Readonly<Record<string, readonly number[]>> = {
  "1-1": [0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
  "1-2": [0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
  "1-3": [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  "2-1": [0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
  "2-2": [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  "2-3": [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
};
const mpegRates = [44_100, 48_000, 32_000];
/** Bytes of a frame of AC-3 by its code, for 48 kHz. At the lowest of its three rates a frame is half as long again. */
const ac3Bytes = [
  64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1152, 1280,
];

/** Bytes of the frame that begins at a place, by its head. 0: none begins there. */
function frameBytes(bytes: Buffer, at: number): number {
  if (at + 7 > bytes.length) return 0;
  const head = bytes.readUInt32BE(at);
  // LOAS has eleven fixed bits, then thirteen of length.
  if (head >>> 21 === 0x2b7) return 3 + ((head >>> 8) & 0x1fff);
  if (head >>> 16 === 0x0b77) return ac3FrameBytes(bytes, at);
  if (head >>> 21 !== 0x7ff) return 0;
  const layer = (head >>> 17) & 3;
  // ADTS has no layer.
  if (layer === 0) {
    if (head >>> 20 !== 0xfff) return 0;
    const length = (bytes.readUIntBE(at + 3, 3) >>> 5) & 0x1fff;
    return length >= 7 ? length : 0;
  }
  return mpegFrameBytes(head, 4 - layer);
}

function ac3FrameBytes(bytes: Buffer, at: number): number {
  // The enhanced form states its length itself.
  if ((bytes[at + 5] ?? 0) >>> 3 > 10) return 2 * ((bytes.readUInt16BE(at + 2) & 0x7ff) + 1);
  const code = bytes[at + 4] ?? 0;
  const base = ac3Bytes[(code & 63) >>> 1] ?? 0;
  const [rate, padding] = [code >>> 6, code & 1];
  if (rate === 0) return base * 2;
  if (rate === 2) return base * 3;
  return rate === 1 ? 2 * (Math.floor((base * 320) / 294) + padding) : 0;
}

function mpegFrameBytes(head: number, layer: number): number {
  const version = (head >>> 19) & 3;
  if (version === 1) return 0;
  const isOne = version === 3;
  const rate = (mpegRates[(head >>> 10) & 3] ?? 0) / (isOne ? 1 : version === 2 ? 2 : 4);
  const bits = (kilobits[`${isOne ? 1 : 2}-${layer}`]?.[(head >>> 12) & 15] ?? 0) * 1_000;
  if (rate === 0 || bits === 0) return 0;
  const padding = (head >>> 9) & 1;
  if (layer === 1) return 4 * (Math.floor((12 * bits) / rate) + padding);
  return Math.floor(((layer === 3 && !isOne ? 72 : 144) * bits) / rate) + padding;
}
