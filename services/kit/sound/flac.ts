// Measures the length of a FLAC by its frames, because the length in its head may be wrong.

/**
 * Places that begin like a frame but are none. 25 MiB of audio have about a thousand. Only a file that is made to keep the thread busy
 * has more.
 */
const maxFalseStarts = 100_000;
/** Samples of a frame by their code. Codes 6 and 7 mean that the number is at the head's end. */
const blockSizes = [
  0, 192, 576, 1152, 2304, 4608, 0, 0, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768,
];
/** Samples a second by their code. 0: the frame has no rate of its own. With codes 12 to 14 the frame's head holds the rate. */
const rates = [
  0, 88_200, 176_400, 192_000, 8_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000,
];

/** Bytes of the block that describes the stream. */
const factBytes = 34;

/**
 * Seconds of a FLAC: the sum of all frames whose head is anywhere in it, at the lower of the frame's and the file's rate. Decoders find
 * frames the same way, even those of a second file behind the first. Undefined where it is no FLAC.
 */
export function lengthOfFlac(bytes: Buffer): number | undefined {
  const head = readHead(bytes);
  if (!head) return undefined;
  let [frames, falseStarts, seconds] = [0, 0, 0];
  let lowest = head.rate;
  for (let at = bytes.indexOf(0xff, head.end); at >= 0; at = bytes.indexOf(0xff, at + 1)) {
    // 14 bits that are the same in each frame, and one that is 0.
    if (((bytes[at + 1] ?? 0) & 0xfe) !== 0xf8) continue;
    const frame = frameAt(bytes, at);
    if (!frame && ++falseStarts > maxFalseStarts) return undefined;
    if (!frame) continue;
    frames++;
    // Decoders play a frame without a rate at the rate of the file or of a frame before it.
    if (frame.rate > 0) lowest = Math.min(lowest, frame.rate);
    seconds += frame.samples / (frame.rate > 0 ? Math.min(frame.rate, head.rate) : lowest);
  }
  return frames === 0 ? undefined : seconds;
}

/** Samples a second that the file states, and the end of its descriptive blocks. */
function readHead(bytes: Buffer): { rate: number; end: number } | undefined {
  let rate: number | undefined;
  for (let at = 4; at + 4 <= bytes.length; ) {
    const kind = bytes[at] ?? 0;
    const size = bytes.readUIntBE(at + 1, 3);
    if ((kind & 0x7f) === 0) {
      // Decoders differ in which of two counts.
      const isWhole = size === factBytes && at + 4 + size <= bytes.length;
      if (rate !== undefined || !isWhole) return undefined;
      // In the upper 20 bits of three bytes.
      rate = bytes.readUIntBE(at + 14, 3) >>> 4;
    }
    at += 4 + size;
    if ((kind & 0x80) === 0) continue;
    return rate && at <= bytes.length ? { rate, end: at } : undefined;
  }
  return undefined;
}

/** The frame whose head is at a place, if that head is right. */
function frameAt(bytes: Buffer, at: number) {
  const [sizes = 0, shape = 0] = [bytes[at + 2], bytes[at + 3]];
  const [sizeCode, rateCode] = [sizes >>> 4, sizes & 15];
  const isKnown = sizeCode !== 0 && rateCode !== 15 && shape >>> 4 < 11 && (shape & 1) === 0;
  if (!isKnown || ((shape >>> 1) & 7) === 3) return undefined;
  // The number of the frame, encoded like a character of UTF-8.
  const lead = bytes[at + 4] ?? 0;
  const ones = Math.clz32(~(lead << 24));
  if (ones === 1 || ones > 7) return undefined;
  let end = at + 4 + Math.max(1, ones);
  let samples = blockSizes[sizeCode] ?? 0;
  if (sizeCode === 6 || sizeCode === 7) {
    const width = sizeCode - 5;
    if (end + width > bytes.length) return undefined;
    samples = bytes.readUIntBE(end, width) + 1;
    end += width;
  }
  let rate = rates[rateCode] ?? 0;
  if (rateCode >= 12) {
    const width = rateCode === 12 ? 1 : 2;
    if (end + width > bytes.length) return undefined;
    rate = bytes.readUIntBE(end, width) * (rateCode === 12 ? 1_000 : rateCode === 13 ? 1 : 10);
    end += width;
  }
  if (end >= bytes.length) return undefined;
  return crc8(bytes.subarray(at, end)) === bytes[end] ? { samples, rate } : undefined;
}

/** CRC-8 of each byte, by the polynomial x^8 + x^2 + x + 1. */
const table = Uint8Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = (crc & 0x80) === 0 ? crc << 1 : (crc << 1) ^ 0x107;
  return crc;
});

/** CRC-8 from 0, as FLAC's frames have it over their heads. */
export function crc8(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = table[crc ^ byte] ?? 0;
  return crc;
}
