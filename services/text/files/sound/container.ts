import {
  BufferSource,
  EncodedPacketSink,
  Input,
  type InputAudioTrack,
  type InputTrack,
  MP4,
  QTFF,
  WEBM,
} from "mediabunny";
import { aacSamples } from "#kit/sound/aac.ts";
import { maxPackets } from "#kit/sound/limits.ts";
import { opusHeadOf, opusRate, readOpusHead, samplesOfOpus } from "#kit/sound/opus.ts";
import { readAacConfig } from "./aac.ts";
import { bytesOfAacUnit } from "./aac-units.ts";
import type { TakenSound } from "./length.ts";
import { M4aWriter } from "./m4a.ts";
import { noComments, OggWriter, oggBytesOf } from "./ogg-writer.ts";
import { webmTracks, wholeWebm } from "./webm.ts";

/** Bytes beside the packets: in an MP4's box of media, and in a whole WebM, which has tags and an index as well. */
const maxOtherBytes = { mp4: 4 * 1024, webm: 64 * 1024 };
/**
 * Boxes of an MP4 at its outermost level. A stream of fragments has two a fragment, of a second or more; more of them are
 * there to keep the thread busy.
 */
const maxBoxes = 100_000;
/** Samples of one chunk of an MP4: writers make chunks of a second or a mebibyte. The library looks through a chunk for each of its samples. */
const maxSamplesAChunk = 8_192;
/** Samples at a start that are not played, as encoders need them: eight units of AAC. More of them are no encoder's. */
const maxSkipped = 8 * aacSamples;
/** A packet's heads in a WebM, in bytes. */
const webmHeadBytes = 24;

/**
 * Takes the sound of an MP4, M4A or WebM by its packets: of Opus, whose packets say themselves how long they are, and of AAC. What
 * goes up is these packets in a file of ours, and nothing else. Of a file that is cut short these are the packets before the cut.
 * Undefined where it has no track of sound or several, another codec, or bytes that are no packet. Uses up the bytes.
 */
export async function takeContainer(
  bytes: Uint8Array<ArrayBuffer>,
): Promise<TakenSound | undefined> {
  const view = viewOf(bytes);
  const mp4 = mp4Media(view);
  if (mp4 && mp4.boxes > maxBoxes) return undefined;
  const whole = mp4 ? view.subarray(0, mp4.end) : wholeWebm(view);
  const written = mp4 ? mp4.tracks : webmTracks(whole);
  using input = new Input({ source: new BufferSource(whole), formats: [MP4, QTFF, WEBM] });
  const [track, second] = await input.getAudioTracks();
  if (!track || second) return undefined;
  // Of what the library leaves out nothing goes up: such a file would come out as another one.
  if ((await input.getTracks()).length !== written) return undefined;
  const headBytes = mp4 ? 0 : webmHeadBytes;
  const bounds = { bytes: mp4?.saidBytes ?? whole.length, packets: whole.length };
  const sound = await sizeOf(track, headBytes, bounds);
  if (!sound || sound.packets === 0) return undefined;
  let known = sound.withHeads;
  for (const pictures of await input.getVideoTracks()) {
    const size = await sizeOf(pictures, headBytes, bounds);
    if (!size) return undefined;
    known += size.withHeads;
  }
  const others = (mp4 ? mp4.mediaBytes : whole.length) - known;
  if (others > (mp4 ? maxOtherBytes.mp4 : maxOtherBytes.webm)) return undefined;
  // Of packets that are listed, those behind the cut are not read.
  sound.bytes = Math.min(sound.bytes, whole.length);
  const { description } = (await track.getDecoderConfig()) ?? {};
  const codec = await track.getCodec();
  if (codec === "opus") {
    // Some writers leave its description out.
    const head = description ? viewOf(description) : opusHeadOf(await track.getNumberOfChannels());
    return await takeOpus(track, head, sound);
  }
  if (codec !== "aac" || !description) return undefined;
  return await takeAac(track, viewOf(description), sound);
}

/** Packets of a track, and their bytes. */
interface TrackSize {
  packets: number;
  bytes: number;
  /** Where each packet has a head as well. */
  withHeads: number;
}

/** Undefined where they are more than the bounds, which are the file's bytes: it lists some of them twice, or such as never were there. */
async function sizeOf(
  track: InputTrack,
  headBytes: number,
  bounds: { bytes: number; packets: number },
): Promise<TrackSize | undefined> {
  let [packets, bytes] = [0, 0];
  for await (const packet of packetsOf(track, { metadataOnly: true })) {
    packets++;
    bytes += packet.byteLength;
    if (packets > Math.min(maxPackets, bounds.packets) || bytes > bounds.bytes) return undefined;
  }
  return { packets, bytes, withHeads: bytes + packets * headBytes };
}

function packetsOf(track: InputTrack, options: { metadataOnly?: boolean } = {}) {
  return new EncodedPacketSink(track).packets(undefined, undefined, options);
}

async function takeOpus(
  track: InputAudioTrack,
  description: Buffer,
  size: TrackSize,
): Promise<TakenSound | undefined> {
  const head = readOpusHead(description);
  if (!head) return undefined;
  const to = Buffer.allocUnsafeSlow(oggBytesOf(size.packets + 2, size.bytes + 64));
  const writer = new OggWriter(to, 0, 1);
  for (const packet of [head, noComments("OpusTags")]) {
    writer.packet(packet, 0);
    writer.page();
  }
  let [samples, cut, left, room] = [0, 0, size.packets, size.bytes];
  for await (const { data, duration } of packetsOf(track)) {
    room -= data.length;
    if (--left < 0 || room < 0) return undefined;
    const own = samplesOfOpus(data);
    samples += own;
    cut = cutOf(own, duration, opusRate);
    writer.packet(data, samples);
  }
  if (samples === 0) return undefined;
  writer.page({ granule: samples - cut });
  const seconds = samples / opusRate;
  const bytes = to.subarray(0, writer.end);
  return { seconds, bytes, ending: "ogg" };
}

async function takeAac(
  track: InputAudioTrack,
  description: Buffer,
  size: TrackSize,
): Promise<TakenSound | undefined> {
  const config = readAacConfig(description);
  if (!config) return undefined;
  const writer = new M4aWriter(size.packets, size.bytes);
  let [packets, cut, skipped] = [0, 0, 0];
  for await (const { data, duration, timestamp } of packetsOf(track)) {
    if (packets++ === 0) skipped = Math.round(Math.max(0, -timestamp) * config.rate);
    const unitBytes = bytesOfAacUnit(data, config.rateCode);
    // Behind its unit a packet may be filled up; what else stands there would be played.
    if (unitBytes === undefined || data.subarray(unitBytes).some((byte) => byte !== 0)) {
      return undefined;
    }
    if (!writer.packet(data.subarray(0, unitBytes))) return undefined;
    cut = cutOf(aacSamples, duration, config.rate);
  }
  if (packets === 0) return undefined;
  const seconds = (packets * aacSamples) / config.rate;
  const bytes = writer.end({
    ...{ ...config, config: config.bytes, lastSamples: aacSamples - cut },
    skipped: skipped > maxSkipped ? 0 : skipped,
  });
  return { seconds, bytes, ending: "m4a" };
}

/** Samples that are cut off the last packet, which says that it is shorter than they are. */
function cutOf(samples: number, seconds: number, rate: number): number {
  const said = Math.round(seconds * rate);
  return said > 0 && said < samples ? samples - said : 0;
}

/** An MP4's outermost boxes, the bytes of those that hold media, and its tracks. */
interface Mp4Media {
  boxes: number;
  /** As their boxes say: where the file is cut short, more than there are. */
  mediaBytes: number;
  /** The same of the whole file. */
  saidBytes: number;
  /** Where the last box ends that can be read: of media also a part. */
  end: number;
  /** -1: none that decoders and the library read alike. */
  tracks: number;
}

/** Reads it from the boxes; undefined where the file is no MP4. */
function mp4Media(view: Buffer): Mp4Media | undefined {
  if (view.toString("latin1", 4, 8) !== "ftyp") return undefined;
  const media: Mp4Media = { boxes: 0, mediaBytes: 0, saidBytes: 0, end: 0, tracks: -1 };
  for (const { name, body, bytes } of boxesIn(view)) {
    media.boxes++;
    if (media.boxes > maxBoxes) break;
    media.saidBytes += bytes;
    if (name === "mdat") media.mediaBytes += bytes;
    // A fragment's index is nothing without the media behind it.
    if (name === "mdat" || (name !== "moof" && media.saidBytes <= view.length)) {
      media.end = Math.min(view.length, media.saidBytes);
    }
    if (name !== "moov") continue;
    // Of two indexes decoders differ in which counts.
    media.tracks = media.tracks < 0 ? tracksIn(body) : -1;
    if (media.tracks < 0) break;
  }
  return media;
}

/** Tracks of an index; -1 where one has several descriptions, or chunks of more samples than writers make. */
function tracksIn(index: Buffer): number {
  let tracks = 0;
  for (const track of boxesIn(index)) {
    if (track.name !== "trak") continue;
    tracks++;
    const table = inBox(track.body, "mdia", "minf", "stbl");
    const descriptions = table && inBox(table, "stsd");
    if (!descriptions || descriptions.length < 8 || descriptions.readUInt32BE(4) !== 1) return -1;
    const chunks = table && inBox(table, "stsc");
    for (let at = 8; chunks && at + 12 <= chunks.length; at += 12) {
      if (chunks.readUInt32BE(at + 4) > maxSamplesAChunk) return -1;
    }
  }
  return tracks;
}

/** The body of a box within boxes. */
function inBox(view: Buffer, ...names: string[]): Buffer | undefined {
  let found: Buffer | undefined = view;
  for (const wanted of names) {
    if (!found) return undefined;
    found = [...boxesIn(found)].find(({ name }) => name === wanted)?.body;
  }
  return found;
}

/** Boxes that stand behind each other, and the bytes that each says it has. */
function* boxesIn(view: Buffer): Generator<{ name: string; body: Buffer; bytes: number }> {
  for (let at = 0; at + 8 <= view.length; ) {
    const [written, name] = [view.readUInt32BE(at), view.toString("latin1", at + 4, at + 8)];
    // 1: it stands behind the name, in eight bytes. 0: the box goes to the end.
    const isLarge = written === 1 && at + 16 <= view.length;
    const size = isLarge ? Number(view.readBigUInt64BE(at + 8)) : written;
    const bytes = size < 8 ? view.length - at : size;
    yield { name, body: view.subarray(at + (isLarge ? 16 : 8), at + bytes), bytes };
    at += bytes;
  }
}

function viewOf(source: AllowSharedBufferSource): Buffer {
  return ArrayBuffer.isView(source)
    ? Buffer.from(source.buffer, source.byteOffset, source.byteLength)
    : Buffer.from(source);
}
