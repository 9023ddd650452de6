import { maxPackets } from "#kit/sound/limits.ts";
import { type OggPacket, oggHeadBytes, oggPackets } from "#kit/sound/ogg.ts";
import { opusRate, readOpusHead, samplesOfOpus } from "#kit/sound/opus.ts";
import type { TakenSound } from "./length.ts";
import { noComments, OggWriter, oggBytesOf } from "./ogg-writer.ts";
import { readVorbisConfig } from "./vorbis.ts";

/** Streams of one file, one behind the other: as a radio's recording has one for each title. */
const maxStreams = 1_000;

/** How packets of a stream behind its head are read. */
interface Reader {
  /** Packets that describe the stream, as they are written anew; the first stands on a page of its own. */
  head: readonly Buffer[];
  rate: number;
  /** Samples that a decoder makes of a packet, and those that count: the most that it could be. Undefined: it is none. */
  samplesOf(packet: Buffer): { samples: number; most: number } | undefined;
}

/**
 * Takes an Ogg file with Opus or Vorbis: the sum of its packets, and a file that has them and nothing else. Streams stand one behind
 * the other, and pages follow each other without a gap; the times that stand in them count for nothing, but that the last
 * may end a stream within its last second. Of Vorbis each packet counts as a long one, so it can come out a few per cent
 * longer. Undefined where it is none, or has another codec.
 */
export function takeOgg(bytes: Buffer): TakenSound | undefined {
  let [packets, packetBytes, streams] = [0, 0, 0];
  for (const packet of oggPackets(bytes)) {
    if (!packet || ++packets > maxPackets) return undefined;
    packetBytes += packet.bytes.length;
    if (packet.isFirst && ++streams > maxStreams) return undefined;
  }
  const to = Buffer.allocUnsafeSlow(
    oggBytesOf(packets + 3 * streams, packetBytes + 64 * streams) + streams * 4 * oggHeadBytes,
  );
  const writing = new Writing(to);
  for (const packet of oggPackets(bytes)) if (!packet || !writing.packet(packet)) return undefined;
  return writing.end();
}

/** The streams of a file as they are written anew. */
class Writing {
  readonly #to: Buffer;
  #writer: OggWriter | undefined;
  #serial = 0;
  #head: Buffer[] = [];
  #reader: Reader | undefined;
  #samples = 0;
  /** The time that the file says where the page of the last packet ends, if that packet ends it, and where its first one should have. */
  #said = { last: -1, offset: undefined as number | undefined };
  #seconds = 0;

  constructor(to: Buffer) {
    this.#to = to;
  }

  /** False: the packet is none that is known here. */
  packet({ bytes, isFirst, granule }: OggPacket): boolean {
    if (isFirst) {
      if (!this.#close(this.#serial === 0)) return false;
      this.#writer = new OggWriter(this.#to, this.#writer?.end ?? 0, ++this.#serial);
      [this.#head, this.#reader, this.#samples] = [[bytes], undefined, 0];
      this.#said = { last: -1, offset: undefined };
      return true;
    }
    const writer = this.#writer;
    if (!writer) return false;
    if (!this.#reader) {
      this.#head.push(bytes);
      const reader = readerOf(this.#head);
      if (reader === "more") return true;
      if (!reader) return false;
      this.#reader = reader;
      for (const [at, packet] of reader.head.entries()) {
        writer.packet(packet, 0);
        if (at === 0 || at === reader.head.length - 1) writer.page();
      }
      return true;
    }
    const length = this.#reader.samplesOf(bytes);
    if (!length) return false;
    this.#samples += length.samples;
    this.#seconds += length.most / this.#reader.rate;
    writer.packet(bytes, this.#samples);
    // Of a page that is cut short none: then the stream ends with its last packet.
    this.#said.last = granule;
    if (granule >= 0) this.#said.offset ??= granule - this.#samples;
    return true;
  }

  end(): TakenSound | undefined {
    // A file that is cut short in the head of a later stream has the ones before it.
    if (!this.#close(this.#serial > 1) || !this.#writer || !(this.#seconds > 0)) return undefined;
    const bytes = this.#to.subarray(0, this.#writer.end) as Buffer<ArrayBuffer>;
    return { seconds: this.#seconds, bytes, ending: "ogg" };
  }

  /** Ends the stream that is written; false where its head is not whole. */
  #close(isNone: boolean): boolean {
    if (!this.#reader) return isNone;
    const { last, offset = 0 } = this.#said;
    // Where a stream begins later than at 0, all its times do; one that begins within its first page is shorter than that page.
    const end = last - Math.max(0, offset);
    const isSoon = end <= this.#samples && end > this.#samples - this.#reader.rate && end > 0;
    this.#writer?.page({ granule: isSoon ? end : this.#samples });
    return true;
  }
}

/** How packets behind a stream's head are read; "more" where the head is not whole; undefined: in no way that is known here. */
function readerOf(head: readonly Buffer[]): Reader | "more" | undefined {
  const [first, second, third] = head;
  if (!first || !second) return "more";
  const opus = readOpusHead(first);
  if (opus) {
    if (second.toString("latin1", 0, 8) !== "OpusTags") return undefined;
    return {
      head: [opus, noComments("OpusTags")],
      rate: opusRate,
      samplesOf: (packet) => {
        const samples = samplesOfOpus(packet);
        return { samples, most: samples };
      },
    };
  }
  if (first.toString("latin1", 0, 7) !== "\u0001vorbis" || first.length < 30) return undefined;
  if (second.toString("latin1", 0, 7) !== "\u0003vorbis") return undefined;
  if (!third) return "more";
  const config = third[0] === 5 ? readVorbisConfig(first, third) : undefined;
  if (!config) return undefined;
  // Two blocks overlap by half; the first alone sounds of nothing.
  let before: number | undefined;
  return {
    head: [first.subarray(0, 30), noComments("\u0003vorbis", [1]), third],
    rate: config.rate,
    samplesOf: (packet) => {
      const block = config.blockOf(packet);
      if (block === undefined) return undefined;
      const samples = before === undefined ? 0 : (before + block) / 4;
      before = block;
      return { samples, most: config.long / 2 };
    },
  };
}
