// Measures a video while it passes on to the store, for `store-output.ts`.

import { CutShortError, failed } from "./faults.ts";
import { videoSanity } from "./limits.ts";
import { type MediaFacts, type Meter, roundedSeconds } from "./meter.ts";

/**
 * Measures an MP4 of `askedSeconds` by its boxes as they pass. `ftyp` must come first, and every box must be complete to the last byte.
 * The index must have a track in a known codec, and the media must hold all frames of the index. The frames themselves are not decoded.
 */
export function createMp4Meter(askedSeconds: number): Meter {
  return new Mp4Meter(askedSeconds);
}

interface PassingBox {
  type: string;
  leftBytes: number;
  parts: Buffer[];
}

const kept: ReadonlySet<string> = new Set(["moov", "moof"]);

class Mp4Meter implements Meter {
  readonly #askedSeconds: number;
  /** The part of the next box's header that has come. */
  #head: Buffer = Buffer.alloc(0);
  /** The box that is passing, with the number of bytes that are still to come. Infinite where it has no size. */
  #box: PassingBox | undefined;
  #isFirst = true;
  #index: Mp4Index | undefined;
  #mediaBytes = 0;
  #fragmentUnits = 0;

  constructor(askedSeconds: number) {
    this.#askedSeconds = askedSeconds;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let at = 0; at < bytes.length; ) {
      at += this.#box ? this.#pass(this.#box, bytes.subarray(at)) : this.#open(bytes.subarray(at));
    }
  }

  end(): MediaFacts {
    if (this.#box && this.#box.leftBytes !== Number.POSITIVE_INFINITY) {
      throw new CutShortError("the video breaks off");
    }
    if (this.#head.length > 0 || !this.#index) throw new CutShortError("the video breaks off");
    const { width, height, timescale, frames, frameBytes } = this.#index;
    const durationSeconds = this.#index.durationSeconds || this.#fragmentUnits / timescale;
    if (frames === 0 && this.#fragmentUnits === 0) throw failed("the video has no frames");
    if (this.#mediaBytes === 0 || this.#mediaBytes < frameBytes) {
      throw new CutShortError("the video breaks off");
    }
    const side = Math.max(width, height);
    if (width < 1 || height < 1 || side > videoSanity.longestSide) {
      throw failed("the video's size makes no sense");
    }
    const least = this.#askedSeconds * videoSanity.leastShare;
    if (durationSeconds <= 0 || durationSeconds < least || durationSeconds > videoSanity.longest) {
      throw failed("the video's length makes no sense");
    }
    return { width, height, durationSeconds: roundedSeconds(durationSeconds) };
  }

  /** Reads on in a header. Answers how many bytes it took. */
  #open(bytes: Buffer): number {
    // A long size comes behind the 8 bytes that every header has.
    const headBytes = this.#head.length < 8 ? 8 : 16;
    const wanted = Math.min(bytes.length, headBytes - this.#head.length);
    this.#head = Buffer.concat([this.#head, bytes.subarray(0, wanted)]);
    const head = headAt(this.#head, 0);
    if (!head) return wanted;
    const { type, size } = head;
    if (this.#isFirst && type !== "ftyp") throw failed("the bytes are no MP4");
    if (!/^[\x20-\x7e\xa9]{4}$/.test(type)) throw failed("the bytes are no MP4");
    const leftBytes = size === 0 ? Number.POSITIVE_INFINITY : size - head.headBytes;
    if (leftBytes < 0 || (kept.has(type) && leftBytes > videoSanity.indexBytes)) {
      throw failed("the video's index is damaged");
    }
    this.#isFirst = false;
    this.#head = Buffer.alloc(0);
    this.#box = { type, leftBytes, parts: [] };
    if (leftBytes === 0) this.#close(this.#box);
    return wanted;
  }

  /** Lets bytes of a box pass. Answers how many. */
  #pass(box: PassingBox, bytes: Buffer): number {
    const passing = bytes.subarray(0, Math.min(bytes.length, box.leftBytes));
    box.leftBytes -= passing.length;
    if (box.type === "mdat") this.#mediaBytes += passing.length;
    // Copied, because the sender may use its memory again.
    else if (kept.has(box.type)) box.parts.push(Buffer.from(passing));
    if (box.leftBytes === 0) this.#close(box);
    return passing.length;
  }

  #close(box: PassingBox): void {
    this.#box = undefined;
    if (box.type === "moov") this.#index = readMp4Index(Buffer.concat(box.parts));
    if (box.type !== "moof") return;
    if (!this.#index) throw failed("the video's index is damaged");
    this.#fragmentUnits += fragmentDuration(Buffer.concat(box.parts), this.#index);
  }
}

/** The facts about the video track in the index. */
interface Mp4Index {
  trackId: number;
  /** Four letters, such as `avc1`. */
  codec: string;
  width: number;
  height: number;
  /** Units a second of the track. */
  timescale: number;
  /** Seconds. 0 where only the fragments have them. */
  durationSeconds: number;
  /** Frames in the index. A fragmented video has its own in each fragment. */
  frames: number;
  /** Their bytes. */
  frameBytes: number;
  /** Units that a frame of a fragment lasts where the fragment does not state it. */
  defaultFrameDuration: number;
}

const codecs: ReadonlySet<string> = new Set([
  ...["avc1", "avc3", "hvc1", "hev1", "dvh1", "dvhe", "av01", "vp08", "vp09", "mp4v"],
]);

/** Reads a `moov` box. Throws a `failed` GenerationError where it describes no video that a player plays. */
function readMp4Index(moov: Buffer): Mp4Index {
  const track = boxesIn(moov).find(
    ({ type, body }) => type === "trak" && handlerOf(body) === "vide",
  )?.body;
  const header = track && boxAt(track, "tkhd");
  const media = track && boxAt(track, "mdia", "mdhd");
  const table = track && boxAt(track, "mdia", "minf", "stbl");
  if (!header || !media || !table) throw failed("the video has no picture");
  const isLong = media[0] === 1;
  const timescale = uint32(media, isLong ? 20 : 12);
  if (timescale === 0) throw failed("the video's index is damaged");
  const trackId = uint32(header, header[0] === 1 ? 20 : 12);
  const duration = uintOfVersion(media, isLong ? 24 : 16);
  return {
    trackId,
    timescale,
    durationSeconds: knownDuration(duration, media) / timescale || durationOfWhole(moov),
    ...descriptionOf(table, header),
    ...framesOf(table),
    defaultFrameDuration: defaultDurationOf(moov, trackId),
  };
}

/** Units that the frames of a `moof` box last, for the video track alone. */
function fragmentDuration(moof: Buffer, index: Mp4Index): number {
  let units = 0;
  for (const { type, body } of boxesIn(moof)) {
    const header = type === "traf" ? boxAt(body, "tfhd") : undefined;
    if (!header || uint32(header, 4) !== index.trackId) continue;
    const each = fragmentDefault(header) ?? index.defaultFrameDuration;
    for (const run of boxesIn(body)) if (run.type === "trun") units += runDuration(run.body, each);
  }
  return units;
}

function handlerOf(track: Buffer): string | undefined {
  return boxAt(track, "mdia", "hdlr")?.toString("latin1", 8, 12);
}

/** All bits set: unknown. */
function knownDuration(duration: number, { 0: version }: Buffer): number {
  return version === 0 && duration === 0xffff_ffff ? 0 : duration;
}

/** The duration in the header of the whole, or in that of the fragments. 0 where both lack it. */
function durationOfWhole(moov: Buffer): number {
  const movie = boxAt(moov, "mvhd");
  if (!movie) return 0;
  const isLong = movie[0] === 1;
  const timescale = uint32(movie, isLong ? 20 : 12);
  const fragments = boxAt(moov, "mvex", "mehd");
  const duration =
    knownDuration(uintOfVersion(movie, isLong ? 24 : 16), movie) ||
    (fragments ? uintOfVersion(fragments, 4) : 0);
  return timescale === 0 ? 0 : duration / timescale;
}

function descriptionOf(table: Buffer, header: Buffer) {
  const entry = boxAt(table, "stsd")?.subarray(8);
  const first = entry && boxesIn(entry).next().value;
  if (!first) throw failed("the video has no picture");
  if (!codecs.has(first.type)) throw failed("the video's codec is not known");
  // 16.16 fixed point. Otherwise the stored size of the frames, where the track does not state one.
  const width = Math.round(uint32(header, header.length - 8) / 65536);
  const height = Math.round(uint32(header, header.length - 4) / 65536);
  const stored = uint32(first.body, 24);
  return { codec: first.type, width: width || stored >>> 16, height: height || stored & 0xffff };
}

function framesOf(table: Buffer): { frames: number; frameBytes: number } {
  const sizes = boxAt(table, "stsz");
  if (!sizes) return { frames: 0, frameBytes: 0 };
  const each = uint32(sizes, 4);
  const frames = uint32(sizes, 8);
  if (each > 0) return { frames, frameBytes: each * frames };
  if (sizes.length < 12 + frames * 4) throw failed("the video's index is damaged");
  let frameBytes = 0;
  for (let frame = 0; frame < frames; frame++) frameBytes += sizes.readUInt32BE(12 + frame * 4);
  return { frames, frameBytes };
}

function defaultDurationOf(moov: Buffer, trackId: number): number {
  const extends_ = boxAt(moov, "mvex");
  if (!extends_) return 0;
  const defaults = boxesIn(extends_).find(
    ({ type, body }) => type === "trex" && uint32(body, 4) === trackId,
  );
  return defaults ? uint32(defaults.body, 12) : 0;
}

/** Optional fields of `tfhd` before the duration: 8 bytes of offset, 4 of a description's number. */
function fragmentDefault(header: Buffer): number | undefined {
  const flags = uint32(header, 0) & 0xff_ffff;
  if (!(flags & 0x8)) return undefined;
  return uint32(header, 8 + (flags & 0x1 ? 8 : 0) + (flags & 0x2 ? 4 : 0));
}

function runDuration(run: Buffer, each: number): number {
  const flags = uint32(run, 0) & 0xff_ffff;
  const frames = uint32(run, 4);
  if (!(flags & 0x100)) return frames * each;
  const first = 8 + (flags & 0x1 ? 4 : 0) + (flags & 0x4 ? 4 : 0);
  const stride = 4 * [0x100, 0x200, 0x400, 0x800].filter((flag) => flags & flag).length;
  let units = 0;
  for (let frame = 0; frame < frames; frame++) units += uint32(run, first + frame * stride);
  return units;
}

/** A box within its parent, without its header. */
interface Box {
  type: string;
  body: Buffer;
}

/** The boxes in a body, in their order. Throws a `failed` GenerationError where one does not fit. */
function* boxesIn(body: Buffer): Generator<Box> {
  for (let at = 0; at < body.length; ) {
    const head = headAt(body, at);
    if (!head || head.size < head.headBytes || at + head.size > body.length) {
      throw failed("the video's index is damaged");
    }
    yield { type: head.type, body: body.subarray(at + head.headBytes, at + head.size) };
    at += head.size;
  }
}

/** The first box of a type, down a path. */
function boxAt(body: Buffer, ...path: string[]): Buffer | undefined {
  let found: Buffer | undefined = body;
  for (const type of path) {
    found = found && boxesIn(found).find((box) => box.type === type)?.body;
  }
  return found;
}

/** Type and size of the box that begins at a place. Undefined where its header is not complete yet. */
function headAt(
  bytes: Buffer,
  at: number,
): { type: string; size: number; headBytes: number } | undefined {
  if (bytes.length < at + 8) return undefined;
  const size = bytes.readUInt32BE(at);
  const type = bytes.toString("latin1", at + 4, at + 8);
  if (size !== 1) return { type, size, headBytes: 8 };
  if (bytes.length < at + 16) return undefined;
  return { type, size: Number(bytes.readBigUInt64BE(at + 8)), headBytes: 16 };
}

/** An unsigned number of 4 bytes. Throws a `failed` GenerationError where the box is too short for it. */
function uint32(body: Buffer, at: number): number {
  if (body.length < at + 4) throw failed("the video's index is damaged");
  return body.readUInt32BE(at);
}

/** An unsigned number of 4 bytes, or of 8 where the box is of version 1. */
function uintOfVersion(body: Buffer, at: number): number {
  if (body[0] !== 1) return uint32(body, at);
  return uint32(body, at) * 2 ** 32 + uint32(body, at + 4);
}
