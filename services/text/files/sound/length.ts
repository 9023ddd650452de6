import { endOfId3 } from "#kit/sound/id3.ts";
import { takeContainer } from "./container.ts";
import { takeFlac } from "./flac.ts";
import { takeMp3 } from "./mp3.ts";
import { takeOgg } from "./ogg.ts";
import { takeWav } from "./wav.ts";

/** A sound as it goes upstream: what was counted of it, in a file that is written anew. */
export interface TakenSound {
  /** What a decoder makes of it at the most. */
  seconds: number;
  bytes: Uint8Array<ArrayBuffer>;
  /** Of a file's name: upstreams go by it. */
  ending: SoundEnding;
}

export type SoundEnding = "flac" | "m4a" | "mp3" | "ogg" | "wav";

/**
 * Measures a sound by the pieces that a decoder plays, never by the length, the times or the rates that stand beside them: a
 * caller writes those, upstream's decoder does not look at them, and upstream is paid for what it plays. A file can be made
 * that one reader takes for a second of sound and another for an hour, so the caller's never goes up: what was counted is
 * written into a file of ours. Every byte has to be a piece that is known here, or a tag. Undefined where one is not, and where
 * the format is none of ours. Uses up the bytes.
 */
export async function takeSound(bytes: Uint8Array<ArrayBuffer>): Promise<TakenSound | undefined> {
  const sound = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const at = endOfId3(sound);
  const name = sound.toString("latin1", at, at + 4);
  if (name === "RIFF") return takeWav(sound.subarray(at));
  if (name === "fLaC") return takeFlac(sound.subarray(at));
  if (name === "OggS") return takeOgg(sound.subarray(at));
  const isMp4 = sound.toString("latin1", 4, 8) === "ftyp";
  const isMatroska = sound.length > 4 && sound.readUInt32BE(0) === matroska;
  if (isMp4 || isMatroska) return await takeContainer(bytes);
  return takeMp3(sound.subarray(at));
}

/** The first four bytes of WebM, of EBML's head. */
const matroska = 0x1a45dfa3;
