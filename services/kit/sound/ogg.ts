// Measures the length of an Ogg file with Opus. `opus.ts` reads its packets.

import { maxPackets } from "./limits.ts";
import { isOpusHead, opusRate, samplesOfOpus } from "./opus.ts";

/** Bytes of a page's head before its table. */
const oggHeadBytes = 27;
/** The beginning of a page: its name, and version 0. */
const pageName = "OggS\0";
/** A piece of this size goes on in the next one. */
const wholePiece = 255;

interface OggPacket {
  bytes: Buffer;
  /** Does it begin a stream? */
  isFirst: boolean;
}

/**
 * Seconds of an Ogg file with Opus: the sum of its packets, of streams that follow each other. Pages must follow each other without a
 * gap. The times written in them are ignored. Undefined where it is no Ogg, or has another codec.
 */
export function lengthOfOpus(bytes: Buffer): number | undefined {
  let [samples, packets] = [0, 0];
  let isSecond = false;
  for (const packet of oggPackets(bytes)) {
    if (!packet || ++packets > maxPackets) return undefined;
    if (packet.isFirst && !isOpusHead(packet.bytes)) return undefined;
    const isTags = isSecond && packet.bytes.toString("latin1", 0, 8) === "OpusTags";
    if (!packet.isFirst && !isTags) samples += samplesOfOpus(packet.bytes);
    isSecond = packet.isFirst;
  }
  return samples / opusRate;
}

/**
 * The packets of a file in their order. A file that is cut short gives those before the cut. The last is undefined where bytes are no
 * page, or a page's packets no packets.
 */
function* oggPackets(bytes: Buffer): Generator<OggPacket | undefined> {
  let serial: number | undefined;
  const begun: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const name = bytes.toString("latin1", at, at + pageName.length);
    if (at + oggHeadBytes > bytes.length && pageName.startsWith(name)) return;
    if (name !== pageName) return yield undefined;
    const flags = bytes[at + 5] ?? 0;
    const [isContinued, isFirst] = [(flags & 1) !== 0, (flags & 2) !== 0];
    // Decoders differ in whether they play one or all of several parallel streams.
    if (!isFirst && bytes.readUInt32LE(at + 14) !== serial) return yield undefined;
    serial = bytes.readUInt32LE(at + 14);
    const pieces = bytes.subarray(at + oggHeadBytes, at + oggHeadBytes + (bytes[at + 26] ?? 0));
    at += oggHeadBytes + (bytes[at + 26] ?? 0);
    // Decoders skip a packet that is not continued, and one that has no beginning.
    if (isContinued !== begun.length > 0) return yield undefined;
    let begin = at;
    for (const [index, piece] of pieces.entries()) {
      at += piece;
      if (at > bytes.length) return;
      if (piece === wholePiece) continue;
      const end = bytes.subarray(begin, at);
      begin = at;
      const packet = begun.length === 0 ? end : Buffer.concat([...begun.splice(0), end]);
      const isPageFirst = isFirst && index === pieces.findIndex((one) => one < wholePiece);
      yield { bytes: packet, isFirst: isPageFirst };
    }
    if (begin < at) begun.push(bytes.subarray(begin, at));
  }
}
