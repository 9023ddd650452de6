import {
  BufferSource,
  EncodedPacketSink,
  FLAC,
  Input,
  type InputAudioTrack,
  type InputFormat,
  MP3,
  MP4,
  OGG,
  QTFF,
  WAVE,
  WEBM,
} from "mediabunny";
import { wholeWebm } from "./webm.ts";

/** A format of sound, by the ending that upstreams know it by. */
export type SoundKind = "flac" | "m4a" | "mp3" | "ogg" | "wav" | "webm";

/** A caller's sound, and how long it is. */
export interface MeasuredSound {
  kind: SoundKind;
  /** What its container says; above 0. */
  seconds: number;
  /** What so many bytes of its kind can hold: at least `seconds`. */
  mostSeconds: number;
  /** The file as it came; of a WebM that is cut short, up to its last whole block. */
  bytes: Uint8Array<ArrayBuffer>;
}

const kinds: ReadonlyMap<InputFormat, SoundKind> = new Map<InputFormat, SoundKind>([
  [MP4, "m4a"],
  [QTFF, "m4a"],
  [WEBM, "webm"],
  [OGG, "ogg"],
  [WAVE, "wav"],
  [FLAC, "flac"],
  [MP3, "mp3"],
]);

/** Bytes of a second at 6 kbit/s: the lowest rate of Opus (RFC 6716, section 2.1.1). Encoders of AAC and Vorbis go no lower. */
const lowestPacked = 750;
/** The same of MP3's lowest rate, 8 kbit/s (ISO 13818-3, 2.4.2.3), in frames without padding: 26 bytes for 576 samples at 22,050 Hz. */
const lowestMp3 = 995;

/**
 * The fewest bytes that a second of speech takes in each format. Silence can take fewer; then what the container says counts.
 * A WAV counts as an MP3, because many decoders play frames of MP3 that stand in the place of its samples. FLAC has no lowest rate:
 * this is an eighth of what a telephone's samples take (8 kHz, 8 bits), and people who speak take half.
 */
const bytesASecond: Readonly<Record<SoundKind, number>> = {
  m4a: lowestPacked,
  webm: lowestPacked,
  ogg: lowestPacked,
  mp3: lowestMp3,
  wav: lowestMp3,
  flac: 1_000,
};

/** {@link measureSound}, in a thread. */
export const inThread = measureSound;

/** A sound goes back as it came: its bytes are not copied. */
export function buffersOf(found: MeasuredSound | undefined): ArrayBuffer[] {
  return found ? [found.bytes.buffer] : [];
}

/** Measures a sound by its container; undefined where the library reads none in it. The answer has the bytes themselves, no copy. */
export async function measureSound(
  file: Uint8Array<ArrayBuffer>,
): Promise<MeasuredSound | undefined> {
  const bytes = wholeWebm(file);
  const read = await readSound(bytes);
  if (!read) return undefined;
  const mostSeconds = Math.max(read.seconds, bytes.length / bytesASecond[read.kind]);
  return { ...read, mostSeconds, bytes };
}

async function readSound(
  bytes: Uint8Array<ArrayBuffer>,
): Promise<Pick<MeasuredSound, "kind" | "seconds"> | undefined> {
  try {
    using input = new Input({ source: new BufferSource(bytes), formats: [...kinds.keys()] });
    const kind = kinds.get(await input.getFormat());
    const track = await input.getPrimaryAudioTrack();
    const seconds = track ? await secondsOf(track) : 0;
    return kind && seconds > 0 && Number.isFinite(seconds) ? { kind, seconds } : undefined;
  } catch {
    // Whatever the library makes of a broken file: it is no sound.
    return undefined;
  }
}

/** Seconds from a track's first packet to the end of its last: a recorder's file can begin at any time. */
async function secondsOf(track: InputAudioTrack): Promise<number> {
  // Without a packet the library looks for the last one of a FLAC for ever.
  const first = await new EncodedPacketSink(track).getFirstPacket({ metadataOnly: true });
  return first ? (await track.computeDuration()) - Math.max(0, first.timestamp) : 0;
}
