import type { SoundFormat } from "#kit/sound/formats.ts";
import type { Upstream } from "#proto/genmesh/catalog/v1/catalog_service_pb.ts";
import { capabilitiesOf } from "../../upstreams/protocols.ts";

/**
 * Seconds that one character of a script takes at the normal pace, rather more than less. A CJK character is a syllable or two:
 * upstreams speak four of them a second. A digit is a word of its own wherever it is not part of a number.
 */
const longCharacterSeconds = 0.3;
/** Seconds of any other character: of English and its like, upstreams speak thirteen to fifteen a second, pauses included. */
const characterSeconds = 0.1;

const longCharacter =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Script=Bopomofo}\p{Script=Yi}\p{Nd}]/gu;

/**
 * Bytes that a second of speech takes in each format, as the most generous of the upstreams makes it: MP3 of OpenAI has 160 kbit/s
 * and that of ElevenLabs 128, Opus of ElevenLabs 128 kbit/s, AAC at most 160. Samples are 24,000 a second of two bytes, and FLAC makes
 * no fewer of a noise.
 */
const bytesASecond: Readonly<Record<SoundFormat, number>> = {
  mp3: 20_000,
  opus: 16_000,
  aac: 20_000,
  flac: 48_000,
  wav: 48_000,
  pcm: 48_000,
};

/** Bytes of a sound beside what is heard: its head and tags, and the silence before and after of the shortest text. */
const besideBytes = 128 * 1024;

/** Seconds that a text takes to be spoken, by its scripts and its pace; estimated, rather too many than too few. */
export function estimatedSeconds(text: string, speed: number): number {
  let characters = 0;
  for (const _ of text) characters++;
  const long = text.match(longCharacter)?.length ?? 0;
  const seconds = long * longCharacterSeconds + (characters - long) * characterSeconds;
  return seconds / speed;
}

/** Seconds of the longest sound that an upstream of these makes: one that has a bound speaks faster what would be longer. */
export function longestSeconds(upstreams: readonly Upstream[]): number {
  const each = upstreams.map(({ protocol }) => {
    return capabilitiesOf(protocol)?.serves.speech?.longestSeconds ?? Number.POSITIVE_INFINITY;
  });
  return Math.max(0, ...each);
}

/** Bytes that a sound of so many seconds has at most, as far as can be known before it is spoken. */
export function estimatedBytes(seconds: number, format: SoundFormat): number {
  return Math.ceil(seconds * bytesASecond[format]) + besideBytes;
}
