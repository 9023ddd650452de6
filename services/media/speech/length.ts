// Estimates how long a text is spoken, and how many bytes that takes in each format.

import type { SoundFormat } from "#kit/sound/formats.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { capabilitiesOf } from "../../upstreams/protocols.ts";

/**
 * Seconds for one character of a script at the normal pace, estimated high. A CJK character is a syllable or two, and upstreams speak
 * four of them a second. A digit is a word of its own unless it is part of a number.
 */
const longCharacterSeconds = 0.3;
/**
 * Seconds for any other character. Of English and similar languages, upstreams speak thirteen to fifteen characters a second, pauses
 * included.
 */
const characterSeconds = 0.1;

const longCharacter =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Nd}]/gu;

/**
 * Bytes of a second of speech in each format, from the upstream that uses the most. MP3 of OpenAI has 160 kbit/s and that of
 * ElevenLabs 128. Opus of ElevenLabs has 128 kbit/s, AAC at most 160. Samples are 24,000 a second of two bytes, and FLAC of noise has
 * as many bytes.
 */
const bytesASecond: Readonly<Record<SoundFormat, number>> = {
  mp3: 20_000,
  opus: 16_000,
  aac: 20_000,
  flac: 48_000,
  wav: 48_000,
  pcm: 48_000,
};

/** Bytes of a file beside the speech itself: its head and tags, and the silence before and after the shortest text. */
const besideBytes = 128 * 1024;

/** Seconds that a text takes to be spoken, by its scripts and its pace. The estimate is rather too high than too low. */
export function estimatedSeconds(text: string, speed: number): number {
  let characters = 0;
  for (const _ of text) characters++;
  const long = text.match(longCharacter)?.length ?? 0;
  const seconds = long * longCharacterSeconds + (characters - long) * characterSeconds;
  return seconds / speed;
}

/** Seconds of the longest speech that one of these upstreams makes. An upstream that has a bound speaks a longer text faster. */
export function longestSeconds(upstreams: readonly Upstream[]): number {
  const each = upstreams.map(({ protocol }) => {
    return capabilitiesOf(protocol)?.serves.speech?.longestSeconds ?? Number.POSITIVE_INFINITY;
  });
  return Math.max(0, ...each);
}

/** The most bytes of a speech of this many seconds, as far as an estimate can tell. */
export function estimatedBytes(seconds: number, format: SoundFormat): number {
  return Math.ceil(seconds * bytesASecond[format]) + besideBytes;
}
