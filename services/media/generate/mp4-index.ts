import { failed } from "./faults.ts";
import { boxAt, boxesIn, uint32, uintOfVersion } from "./mp4-boxes.ts";

/** What the index of a video says of its picture. */
export interface Mp4Index {
  trackId: number;
  /** Four letters, such as `avc1`. */
  codec: string;
  width: number;
  height: number;
  /** Units a second of the track. */
  timescale: number;
  /** Seconds; 0 where only the fragments know. */
  durationSeconds: number;
  /** Frames in the index; a fragmented video has its own in each fragment. */
  frames: number;
  /** Their bytes. */
  frameBytes: number;
  /** Units that a frame of a fragment lasts where the fragment does not say. */
  defaultFrameDuration: number;
}

const codecs: ReadonlySet<string> = new Set([
  ...["avc1", "avc3", "hvc1", "hev1", "dvh1", "dvhe", "av01", "vp08", "vp09", "mp4v"],
]);

/** Reads a `moov` box. Throws a `failed` GenerationError where it describes no video that a player plays. */
export function readMp4Index(moov: Buffer): Mp4Index {
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

/** Units that the frames of a `moof` box last, for the picture alone. */
export function fragmentDuration(moof: Buffer, index: Mp4Index): number {
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

/** What the header of the whole says, or the one of the fragments; 0 where neither does. */
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
  // 16.16 fixed point; what the pictures are stored as where the track does not say.
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
