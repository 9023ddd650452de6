import { aacSamples } from "#kit/sound/aac.ts";

/** What an M4A is written of. */
export interface M4aFacts {
  rate: number;
  channels: number;
  /** The decoder's configuration (ISO 14496-3, AudioSpecificConfig). */
  config: Buffer;
  /** Samples at the start that are not played. */
  skipped: number;
  /** Samples of the last packet. */
  lastSamples: number;
}

/** Bytes of an M4A beside its packets and their sizes: what stands below comes to some 600. */
const otherBytes = 1_024;

/** Writes packets of AAC as an M4A with one track, one chunk and one edit: its index first, so that it can be read from a pipe. */
export class M4aWriter {
  readonly #packets: number;
  readonly #to: Buffer<ArrayBuffer>;
  readonly #sizes: Buffer;
  readonly #from: number;
  #at: number;
  #written = 0;

  /** Room for so many packets of so many bytes together. */
  constructor(packets: number, bytes: number) {
    this.#packets = packets;
    this.#from = otherBytes + packets * 4;
    this.#to = Buffer.allocUnsafeSlow(this.#from + bytes);
    this.#sizes = Buffer.alloc(packets * 4);
    this.#at = this.#from;
  }

  /** False where there is no room for it. */
  packet(packet: Uint8Array): boolean {
    if (this.#written >= this.#packets || this.#at + packet.length > this.#to.length) return false;
    this.#to.set(packet, this.#at);
    this.#sizes.writeUInt32BE(packet.length, this.#written++ * 4);
    this.#at += packet.length;
    return true;
  }

  /** The whole file. */
  end(facts: M4aFacts): Buffer<ArrayBuffer> {
    const type = box("ftyp", ascii("M4A "), uint32s(0x200), ascii("M4A isomiso2mp41"));
    const sizes = this.#sizes.subarray(0, this.#written * 4);
    const index = (place: number) => indexOf(facts, sizes, this.#written, place);
    const headBytes = type.length + index(0).length + 8;
    const media = Buffer.concat([uint32s(8 + this.#at - this.#from), ascii("mdat")]);
    const head = Buffer.concat([type, index(headBytes), media]);
    const from = this.#from - head.length;
    this.#to.set(head, from);
    return this.#to.subarray(from, this.#at);
  }
}

function indexOf(facts: M4aFacts, sizes: Buffer, packets: number, place: number): Buffer {
  const { rate, channels, config, skipped, lastSamples } = facts;
  const whole = packets - 1;
  const duration = whole * aacSamples + lastSamples;
  const played = Math.max(0, duration - skipped);
  const unit = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000];
  const head = box(
    "mvhd",
    uint32s(0, 0, 0, rate, played, 0x10000, 0x01000000, 0, 0, ...unit, 0, 0, 0, 0, 0, 0, 2),
  );
  const trackHead = uint32s(3, 0, 0, 1, 0, played, 0, 0, 0, 0x01000000, ...unit, 0, 0);
  const entry = Buffer.concat([
    ...[uint32s(0, 1, 0, 0, channels * 0x10000 + 16, 0), uint32s((rate & 0xffff) * 0x10000)],
    box("esds", uint32s(0), descriptor(3, Buffer.from([0, 0, 0]), decoder(config), synchronous)),
  ]);
  const durations = whole > 0 ? [2, whole, aacSamples, 1, lastSamples] : [1, 1, lastSamples];
  const table = box(
    "stbl",
    box("stsd", uint32s(0, 1), box("mp4a", entry)),
    box("stts", uint32s(0, ...durations)),
    box("stsc", uint32s(0, 1, 1, packets, 1)),
    box("stsz", uint32s(0, 0, packets), sizes),
    box("stco", uint32s(0, 1, place)),
  );
  const source = box("dinf", box("dref", uint32s(0, 1), box("url ", uint32s(1))));
  const media = box(
    "mdia",
    // "und": no language.
    box("mdhd", uint32s(0, 0, 0, rate, duration, 0x55c40000)),
    box("hdlr", uint32s(0, 0), ascii("soun"), uint32s(0, 0, 0), Buffer.alloc(1)),
    box("minf", box("smhd", uint32s(0, 0)), source, table),
  );
  const edit = box("edts", box("elst", uint32s(0, 1, played, skipped, 0x10000)));
  return box("moov", head, box("trak", box("tkhd", trackHead), edit, media));
}

/** How long elements of ISO 14496-1 say that they are: in one byte, of seven bits. */
function descriptor(tag: number, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag, body.length]), body]);
}

/** AAC, as sound, with no bound of its rate. */
function decoder(config: Buffer): Buffer {
  return descriptor(4, Buffer.from([0x40, 0x15]), Buffer.alloc(11), descriptor(5, config));
}
const synchronous = descriptor(6, Buffer.from([2]));

function box(type: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([uint32s(body.length + 8), ascii(type), body]);
}

function ascii(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function uint32s(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 4);
  for (const [at, value] of values.entries()) bytes.writeUInt32BE(value >>> 0, at * 4);
  return bytes;
}
