// Sings syllables into a mix, with the mouth of the speech model.

import type { Random } from "../seed.ts";
import { type Phoneme, phonemeOf } from "../speech/phonemes.ts";
import { Tract, type Utterance } from "../speech/tract.ts";
import type { Voice } from "../speech/voice.ts";
import type { Syllable } from "./lyrics.ts";
import { lay, type Mix } from "./player.ts";
import { frequencyOf } from "./theory.ts";

/** A syllable on a note. Times are in seconds. */
export type SungNote = {
  readonly syllable: Syllable;
  readonly start: number;
  readonly length: number;
  readonly midi: number;
};

/** A consonant takes this share of its spoken length, and all together take at most half a note. */
const CONSONANT_SHARE = 0.8;
/** A held vowel swings around its note this often a second, and this far. */
const VIBRATO_HZ = 5.4;
const VIBRATO_DEPTH = 0.011;
const PIECE_SECONDS = 0.045;
const LOUDNESS = 0.55;
const HALL_SHARE = 0.55;

/** Creates a singer who sings into a mix, one note after another, with a voice that suits a tune around `middleMidi`. */
export function createSinger(
  mix: Mix,
  middleMidi: number,
  random: Random,
): (note: SungNote) => void {
  const voice: Voice = {
    pitchHz: frequencyOf(middleMidi),
    melody: 0,
    size: middleMidi > 60 ? 1.13 : 0.98,
    breath: random.between(0.08, 0.16),
    roughness: 0.003,
    pace: 1,
  };
  const tract = new Tract(voice, mix.sampleRate, random.below(2 ** 31));
  let before = frequencyOf(middleMidi);
  return (note) => {
    const parts = note.syllable.map(phonemeOf);
    const pitch = frequencyOf(note.midi);
    const buffer = new Float32Array(Math.ceil((note.length + 0.2) * mix.sampleRate));
    let at = 0;
    let sung = 0;
    for (const utterance of utterancesOf(parts, note.length, before, pitch)) {
      if (sung + utterance.seconds > note.length + 0.15) break;
      sung += utterance.seconds;
      at = tract.speak(utterance, buffer, at);
    }
    before = pitch;
    const samples = buffer.subarray(0, at);
    soften(samples, Math.round(mix.sampleRate * 0.012));
    const from = Math.round(note.start * mix.sampleRate);
    lay(mix, samples, from, { place: 0, gain: LOUDNESS * Math.SQRT2, share: HALL_SHARE });
  };
}

function* utterancesOf(
  parts: readonly Phoneme[],
  length: number,
  fromHz: number,
  toHz: number,
): Generator<Utterance> {
  const spoken = (part: Phoneme): number =>
    ((part.lengthMs + (part.closureMs ?? 0)) / 1000) * CONSONANT_SHARE;
  const consonants = parts.filter((part) => part.vowel !== true);
  const wanted = consonants.reduce((sum, part) => sum + spoken(part), 0);
  const squeeze = Math.min(1, (length * 0.5) / Math.max(wanted, 0.001));
  const vowels = parts.length - consonants.length;
  const held = (length - wanted * squeeze) / Math.max(1, vowels);
  for (const part of parts) {
    if (part.vowel !== true) {
      yield { phoneme: part, seconds: spoken(part) * squeeze, fromHz, toHz, strength: 0.9 };
      continue;
    }
    // The vowel in short pieces. First it slides to the note, then it swings around it.
    const still: Phoneme = { formants: part.formants, lengthMs: part.lengthMs, voice: 1 };
    let pitch = fromHz;
    for (let time = 0; time < held; time += PIECE_SECONDS) {
      const seconds = Math.min(PIECE_SECONDS, held - time);
      if (seconds < 0.004) break;
      const depth = VIBRATO_DEPTH * Math.min(1, time / 0.4);
      const swing = 1 + depth * Math.sin(time * Math.PI * 2 * VIBRATO_HZ);
      const slide = Math.min(1, (time + PIECE_SECONDS) / 0.09);
      const next = (fromHz + (toHz - fromHz) * slide) * swing;
      const ending = held - time <= PIECE_SECONDS;
      const phoneme =
        ending && part.glideTo !== undefined ? { ...still, formants: part.glideTo } : still;
      yield { phoneme, seconds, fromHz: pitch, toHz: next, strength: 1 };
      pitch = next;
    }
  }
}

/** Lets a note begin and end without a click. */
function soften(samples: Float32Array, fade: number): void {
  for (let i = 0; i < samples.length; i++) {
    const edge = Math.min(1, (i + 1) / 60, (samples.length - i) / fade);
    samples[i] = (samples[i] as number) * edge;
  }
}
