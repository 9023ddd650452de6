import { hasFramesOfCodec } from "#kit/sound/frames.ts";

/**
 * Bytes at the start of an MP3 in which something else is looked for. An MP3 has no name at its start, so libav guesses what it is, and
 * is sure after seven frames, of at most 1,441 bytes each.
 */
const guessedBytes = 64 * 1024;
/** Names that libav looks for behind any start, and follows there: of NUT, and of MXF. */
const names = ["4e4d7a561f5f04ad", "060e2b34020501010d010201"].map((hex) =>
  Buffer.from(hex, "hex"),
);
/** Parts of an MPEG programme stream: so many of them are no chance. */
const maxParts = 3;
/** Bytes of a packet of an MPEG transport stream: alone, with a time, with a checksum. Each begins with the same byte. */
const packetBytes = [188, 192, 204];
const packetStart = 0x47;
/** Of ten packets libav wants seven. */
const [packetsLooked, packetsEnough] = [10, 6];

/** Would a decoder take a WAV for something else than its samples? */
export function isOtherThanWav(bytes: Buffer): boolean {
  return hasName(bytes) || isDictation(bytes);
}

/** Would a decoder take frames of MP3 for something else? */
export function isOtherThanMp3(bytes: Buffer): boolean {
  const start = bytes.subarray(0, guessedBytes);
  return (
    hasName(bytes) ||
    hasFramesOfCodec(start, { mpeg: false }) ||
    isProgramme(start) ||
    isTransport(start)
  );
}

function hasName(bytes: Buffer): boolean {
  return names.some((name) => bytes.includes(name));
}

/** Dictation machines (ACT) write a WAV's head, zeros, one byte, zeros, and then a codec of telephones. */
function isDictation(bytes: Buffer): boolean {
  const isZero = (from: number, to: number) => bytes.subarray(from, to).every((byte) => byte === 0);
  return bytes[256] === 0x84 && isZero(44, 256) && isZero(264, 512);
}

function isProgramme(bytes: Buffer): boolean {
  let parts = 0;
  for (let at = bytes.indexOf(1, 2); at >= 0; at = bytes.indexOf(1, at + 1)) {
    if (bytes[at - 1] !== 0 || bytes[at - 2] !== 0) continue;
    const [part = 0, next = 0] = [bytes[at + 1], bytes[at + 2]];
    // A pack, of MPEG-2 or MPEG-1.
    if (part === 0xba && (next >>> 6 === 1 || next >>> 4 === 2)) return true;
    if (part < 0xbd || part > 0xef) continue;
    const head = bytes[at + 4] ?? 0;
    const isHead = head === 0xff || head === 0x0f || (head >= 0x20 && head < 0xc0);
    if (isHead && ++parts >= maxParts) return true;
  }
  return false;
}

function isTransport(bytes: Buffer): boolean {
  for (let at = bytes.indexOf(packetStart); at >= 0; at = bytes.indexOf(packetStart, at + 1)) {
    for (const size of packetBytes) {
      let packets = 0;
      for (let one = 0; one < packetsLooked; one++) {
        if (bytes[at + one * size] === packetStart) packets++;
      }
      if (packets >= packetsEnough) return true;
    }
  }
  return false;
}
