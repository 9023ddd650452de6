// Measures the length of AAC without a container, by its frames.

import { endOfId3 } from "./id3.ts";

/** Samples of a block of AAC. */
const aacSamples = 1_024;
/** Samples a second by their code in a description of AAC. The code behind the last means that the rate is written out. */
const aacRates = [
  96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000,
  7_350,
];
/** Bytes of a frame's head without its checksum. */
const headBytes = 7;

/**
 * Seconds of AAC in ADTS frames, its form without a container (ISO 14496-3, 1.A.3.2). It is the sum of the frames, each at its own
 * rate. Undefined where a byte belongs to no whole frame.
 */
export function lengthOfAac(bytes: Buffer): number | undefined {
  let [frames, seconds] = [0, 0];
  for (let at = endOfId3(bytes); at < bytes.length; ) {
    if (at + headBytes > bytes.length) return undefined;
    // Twelve bits that are the same in each frame, one of the version, and two of a layer that is always 0.
    if ((bytes.readUInt16BE(at) & 0xfff6) !== 0xfff0) return undefined;
    const rate = aacRates[((bytes[at + 2] ?? 0) >>> 2) & 15];
    const size = (bytes.readUIntBE(at + 3, 3) >>> 5) & 0x1fff;
    if (rate === undefined || size < headBytes || at + size > bytes.length) return undefined;
    const blocks = ((bytes[at + 6] ?? 0) & 3) + 1;
    seconds += (blocks * aacSamples) / rate;
    frames++;
    at += size;
  }
  return frames < 2 ? undefined : seconds;
}
