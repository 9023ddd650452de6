/** Bytes of a page's head before its table. */
const headBytes = 27;
/** Pieces of one page at the most (RFC 3533), each of at most 255 bytes. */
const maxPieces = 255;
const maxPieceBytes = 255;
/** Bytes after which a page ends: some seconds of speech, as encoders do it, so that players can seek. */
const pageBytes = 8_192;

/** Bytes of an Ogg file with so many packets of so many bytes together, at the most. */
export function oggBytesOf(packets: number, bytes: number): number {
  const pieces = packets + Math.ceil(bytes / maxPieceBytes);
  const pages = Math.ceil(pieces / maxPieces) + Math.ceil(bytes / pageBytes) + 4;
  return bytes + pieces + pages * headBytes;
}

/** Writes one stream of packets as Ogg, page by page. */
export class OggWriter {
  readonly #to: Buffer;
  readonly #serial: number;
  #at: number;
  #pages = 0;
  #pieces: number[] = [];
  #parts: Uint8Array[] = [];
  #bytes = 0;
  #isContinued = false;
  /** Of the last packet that ends on the page; -1: none does. */
  #granule = -1;

  constructor(to: Buffer, at: number, serial: number) {
    this.#to = to;
    this.#at = at;
    this.#serial = serial;
  }

  /** Where the last page ends. */
  get end(): number {
    return this.#at;
  }

  /** A packet behind the last; `granule` counts the samples up to its end. */
  packet(packet: Uint8Array, granule: number): void {
    if (this.#bytes >= pageBytes) this.page();
    let from = 0;
    for (let isOver = false; !isOver; ) {
      if (this.#pieces.length === maxPieces) {
        this.page();
        this.#isContinued = from > 0;
      }
      const piece = Math.min(maxPieceBytes, packet.length - from);
      this.#pieces.push(piece);
      this.#parts.push(packet.subarray(from, from + piece));
      this.#bytes += piece;
      from += piece;
      isOver = piece < maxPieceBytes;
    }
    this.#granule = granule;
  }

  /** Ends the page; the stream's last may say that it ends earlier than its packets. */
  page(last?: { granule: number }): void {
    const { length } = this.#pieces;
    const from = this.#at;
    const to = this.#to;
    const flags = Number(this.#isContinued) | (this.#pages === 0 ? 2 : 0) | (last ? 4 : 0);
    to.write("OggS", from, "latin1");
    to[from + 4] = 0;
    to[from + 5] = flags;
    to.writeBigInt64LE(BigInt(last?.granule ?? this.#granule), from + 6);
    to.writeUInt32LE(this.#serial, from + 14);
    to.writeUInt32LE(this.#pages, from + 18);
    to.writeUInt32LE(0, from + 22);
    to[from + 26] = length;
    to.set(this.#pieces, from + headBytes);
    let at = from + headBytes + length;
    for (const part of this.#parts) {
      to.set(part, at);
      at += part.length;
    }
    to.writeUInt32LE(oggCrc(to.subarray(from, at)), from + 22);
    this.#at = at;
    this.#pages++;
    [this.#pieces, this.#parts, this.#bytes] = [[], [], 0];
    [this.#isContinued, this.#granule] = [false, -1];
  }
}

/** CRC-32 of each byte, by Ogg's polynomial. */
const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = crc < 0 ? (crc << 1) ^ 0x04c11db7 : crc << 1;
  return crc;
});

function oggCrc(bytes: Uint8Array): number {
  let crc = 0;
  for (const byte of bytes) crc = (crc << 8) ^ (table[(crc >>> 24) ^ byte] ?? 0);
  return crc >>> 0;
}

/** A packet of comments with none in it, under a codec's own head. */
export function noComments(head: string, framing: readonly number[] = []): Buffer {
  return Buffer.from([...Buffer.from(head, "latin1"), 0, 0, 0, 0, 0, 0, 0, 0, ...framing]);
}
