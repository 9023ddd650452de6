// Measures how long the audio is that an upstream made, in any format but MP3. upstreams/media/store-output.ts asks it.

import { isUtf8 } from "node:buffer";
import { lengthOfAac } from "./aac.ts";
import { heads } from "./beginning.ts";
import { lengthOfFlac } from "./flac.ts";
import { pcmRate, type SoundFormat } from "./formats.ts";
import { hasFramesOfCodec } from "./frames.ts";
import { lengthOfOpus } from "./ogg.ts";
import { lengthOfWav } from "./wav.ts";

const pcmBytesASecond = pcmRate * 2;

/** Bytes of samples that are searched for frames of a codec. They hold some frames of any codec. */
const lookedThroughBytes = 16 * 1024;

/** A format whose audio is in memory to be measured. MP3 is measured as its bytes pass. */
type MeasuredFormat = Exclude<SoundFormat, "mp3">;

/**
 * Seconds of a whole audio file of a format. Undefined where the bytes are not of that format. For audio of upstreams, which hide
 * nothing.
 */
export function secondsOf(bytes: Uint8Array, format: MeasuredFormat): number | undefined {
  const sound = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const seconds = readers[format](sound);
  return seconds !== undefined && seconds > 0 ? seconds : undefined;
}

const readers: Readonly<Record<MeasuredFormat, (sound: Buffer) => number | undefined>> = {
  opus: lengthOfOpus,
  aac: lengthOfAac,
  flac: (sound) => (beginsWith(sound, "fLaC") ? lengthOfFlac(sound) : undefined),
  wav: (sound) => (beginsWith(sound, "RIFF") ? lengthOfWav(sound, lookedThroughBytes) : undefined),
  pcm: lengthOfPcm,
};

/** Any bytes could be samples. Bytes that are text, have a head, or hold frames of a codec are something else. */
function lengthOfPcm(sound: Buffer): number | undefined {
  const isText = sound.length > 0 && sound[0] !== 0 && isUtf8(sound);
  const isFile =
    heads.has(sound.toString("latin1", 0, 4)) || sound.toString("latin1", 0, 3) === "ID3";
  if (
    sound.length % 2 !== 0 ||
    isText ||
    isFile ||
    hasFramesOfCodec(sound.subarray(0, lookedThroughBytes))
  )
    return undefined;
  return sound.length / pcmBytesASecond;
}

function beginsWith(sound: Buffer, name: string): boolean {
  return sound.toString("latin1", 0, name.length) === name;
}
