// Turns a text into phonemes with their length and pitch. `tract.ts` speaks them.

import type { Random } from "../seed.ts";
import { soundsOf } from "./letters.ts";
import { type PhonemeName, phonemeOf } from "./phonemes.ts";
import type { Utterance } from "./tract.ts";
import type { Voice } from "./voice.ts";

/** A phoneme, or a pause of some seconds. */
export type Spoken = Utterance | { readonly pauseSeconds: number };

const PAUSES_SECONDS: readonly (readonly [RegExp, number])[] = [
  [/[.!?…。！？]/u, 0.36],
  [/[,;:、，；：]/u, 0.17],
  [/[-–—()"“”]/u, 0.1],
  [/\n/u, 0.3],
];

/**
 * Turns a text into phonemes with their pitch. It sinks through a sentence, rises on stressed syllables, and goes up at the end of a
 * question. `speed` divides all lengths.
 */
export function* phraseText(
  text: string,
  voice: Voice,
  language: string | undefined,
  speed: number,
  random: Random,
): Generator<Spoken> {
  const pace = speed * voice.pace;
  for (const sentence of splitSentences(text)) {
    const question = /[?？]\s*$/u.test(sentence);
    const parts =
      sentence.match(/[\p{Letter}\p{Mark}\p{Number}'’]+|[^\p{Letter}\p{Number}]/gu) ?? [];
    const start = voice.pitchHz * (1 + voice.melody * 0.45);
    let pitch = start;
    for (const [index, part] of parts.entries()) {
      const pause = PAUSES_SECONDS.find(([marks]) => marks.test(part))?.[1];
      if (pause !== undefined) {
        yield { pauseSeconds: pause / pace };
        pitch += (start - pitch) * 0.4;
        continue;
      }
      if (!/[\p{Letter}\p{Number}]/u.test(part)) continue;
      const last = index >= parts.length - 3;
      const along = index / parts.length;
      const floor = voice.pitchHz * (1 - voice.melody * 0.5 * along);
      const sounds = soundsOf(part.replace(/['’]/g, ""), language);
      yield* speakWord(sounds, { pitch, floor, pace, rising: question && last, voice, random });
      pitch += (floor - pitch) * 0.3;
    }
    yield { pauseSeconds: 0.08 / pace };
  }
}

type WordPlan = {
  readonly pitch: number;
  readonly floor: number;
  readonly pace: number;
  readonly rising: boolean;
  readonly voice: Voice;
  readonly random: Random;
};

function* speakWord(names: readonly PhonemeName[], plan: WordPlan): Generator<Utterance> {
  const { voice, pace, random } = plan;
  let stressed = false;
  let pitch = plan.pitch;
  for (const [index, name] of names.entries()) {
    const phoneme = phonemeOf(name);
    const accent = phoneme.vowel === true && !stressed && names.length > 2;
    if (accent) stressed = true;
    const share = (index + 1) / names.length;
    const bend = accent ? voice.melody * random.between(0.5, 1.1) : 0;
    const rise = plan.rising ? voice.melody * 2.2 * share : 0;
    const toHz = plan.floor * (1 + bend + rise) + (plan.pitch - plan.floor) * (1 - share);
    const length = phoneme.lengthMs + (phoneme.closureMs ?? 0);
    const stretch = (accent ? 1.22 : 1) * random.between(0.92, 1.08);
    const seconds = (length * stretch) / 1000 / pace;
    yield { phoneme, seconds, fromHz: pitch, toHz, strength: accent ? 1.1 : 0.9 };
    pitch = toHz;
  }
}

function splitSentences(text: string): string[] {
  const segmenter = new Intl.Segmenter("en", { granularity: "sentence" });
  return Array.from(segmenter.segment(text.toWellFormed()), ({ segment }) => segment);
}
