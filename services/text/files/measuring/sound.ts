// Measures how long an audio file is, by its container. It runs in a thread that `meter.ts` starts.

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

/** A format of audio, by the file extension under which upstreams know it. */
export type SoundKind = "flac" | "m4a" | "mp3" | "ogg" | "wav" | "webm";

/** A caller's audio, and its length. */
export interface MeasuredSound {
  kind: SoundKind;
  /** The length in its container, above 0. */
  seconds: number;
  /** The greatest length that this many bytes of its kind can have, at least `seconds`. */
  mostSeconds: number;
  /** The original file. A WebM that is cut short ends with its last whole block. */
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

/** Bytes of a second at 6 kbit/s, the lowest rate of Opus (RFC 6716, section 2.1.1). Encoders of AAC and Vorbis go no lower. */
const lowestPacked = 750;
/** The same of MP3's lowest rate, 8 kbit/s (ISO 13818-3, 2.4.2.3), in frames without padding: 26 bytes for 576 samples at 22,050 Hz. */
const lowestMp3 = 995;

/**
 * The fewest bytes of a second of speech in each format. Silence can take fewer. Then the length in the container counts. A WAV counts
 * like an MP3, because many decoders play frames of MP3 instead of its samples. FLAC has no lowest rate. Its number is an eighth of
 * that of a telephone's samples (8 kHz, 8 bits), and human speech takes half.
 */
const bytesASecond: Readonly<Record<SoundKind, number>> = {
  m4a: lowestPacked,
  webm: lowestPacked,
  ogg: lowestPacked,
  mp3: lowestMp3,
  wav: lowestMp3,
  flac: 1_000,
};

/** {@link measureSound} in a thread. */
export const inThread = measureSound;

/** The buffers to hand back. The audio goes back with its original bytes, without a copy. */
export function buffersOf(found: MeasuredSound | undefined): ArrayBuffer[] {
  return found ? [found.bytes.buffer] : [];
}

/** Measures audio by its container. Undefined where the library finds none. The answer has the bytes themselves, not a copy. */
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
    // Any error of the library on a broken file means that it is no audio.
    return undefined;
  }
}

/** Seconds from a track's first packet to the end of its last. A recorder's file can begin at any time. */
async function secondsOf(track: InputAudioTrack): Promise<number> {
  // In a FLAC without a packet the library would look for the last one for ever.
  const first = await new EncodedPacketSink(track).getFirstPacket({ metadataOnly: true });
  return first ? (await track.computeDuration()) - Math.max(0, first.timestamp) : 0;
}
