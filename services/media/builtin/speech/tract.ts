import { createNoiseSource, Resonator } from "../audio/dsp.ts";
import type { Phoneme } from "./phonemes.ts";
import type { Voice } from "./voice.ts";

/** One sound with its length and the pitch at its start and end. */
export type Utterance = {
  readonly phoneme: Phoneme;
  readonly seconds: number;
  readonly fromHz: number;
  readonly toHz: number;
  /** Loudness of the whole sound, about 1. */
  readonly strength: number;
};

/** A mouth that speaks one sound after another and remembers its position between them. */
export type Tract = {
  /** Adds the sound's samples to `output` from `at` on and gives the next position. */
  readonly speak: (utterance: Utterance, output: Float32Array, at: number) => number;
  /** Number of samples that `speak` will write. */
  readonly lengthOf: (utterance: Utterance) => number;
  /** Lets the mouth rest: the next sound starts from its own position. */
  readonly rest: () => void;
};

/** The mouth's position is set anew this often. */
const STEP_SECONDS = 0.004;
/** A sound's resonances come from the one before within this time at most. */
const GLIDE_SECONDS = 0.045;
const WIDTHS_HZ = [80, 110, 170, 260] as const;
/** Loudness of each resonance; the signs keep neighbours from cancelling between them. */
const GAINS = [1, -1, 0.8, -0.5] as const;
/** A resonance at this frequency keeps its gain; higher ones gain, as sound leaves the lips. */
const EVEN_HZ = 500;
/** The fourth resonance hardly moves. */
const FOURTH_HZ = 3500;
const VOICE_GAIN = 1.5;
const HISS_GAIN = 0.9;

type Position = { f1: number; f2: number; f3: number; voice: number; breath: number; hiss: number };

/** Creates the mouth of a voice. Equal calls give equal samples. */
export function createTract(voice: Voice, sampleRate: number, seed: number): Tract {
  const noise = createNoiseSource(seed);
  const resonances = WIDTHS_HZ.map(() => new Resonator());
  const hissing = new Resonator();
  const gains = [...GAINS] as number[];
  const fourth = Math.min(FOURTH_HZ * voice.size, sampleRate * 0.45);
  (resonances[3] as Resonator).tune(fourth, WIDTHS_HZ[3], sampleRate);
  gains[3] = GAINS[3] * Math.sqrt(fourth / EVEN_HZ);
  let from: Position | undefined;
  let phase = 0;
  let clock = 0;

  /** One sample of the vocal folds: open slowly, close quickly, then stay closed. */
  const fold = (): number => {
    const open = 0.62;
    if (phase > open) return -0.15;
    const share = phase / open;
    return share * share * (3 - 4.2 * share) * 1.6;
  };

  const tune = (position: Position, phoneme: Phoneme): void => {
    const limit = sampleRate * 0.45;
    const set = (index: number, hz: number): void => {
      const centre = Math.min(hz * voice.size, limit);
      (resonances[index] as Resonator).tune(centre, WIDTHS_HZ[index] as number, sampleRate);
      gains[index] = (GAINS[index] as number) * Math.sqrt(centre / EVEN_HZ);
    };
    set(0, position.f1);
    set(1, position.f2);
    set(2, position.f3);
    hissing.tune(Math.min(phoneme.hissHz ?? 4000, limit), phoneme.hissWidthHz ?? 1500, sampleRate);
  };

  const closure = (utterance: Utterance): number =>
    Math.round(
      (sampleRate * utterance.seconds * (utterance.phoneme.closureMs ?? 0)) /
        (utterance.phoneme.lengthMs + (utterance.phoneme.closureMs ?? 0)),
    );

  const speak = (utterance: Utterance, output: Float32Array, at: number): number => {
    const { phoneme } = utterance;
    const total = Math.round(utterance.seconds * sampleRate);
    const closed = closure(utterance);
    const target = positionOf(phoneme, phoneme.formants);
    const end = positionOf(phoneme, phoneme.glideTo ?? phoneme.formants);
    const start = from ?? { ...target, voice: 0, breath: 0, hiss: 0 };
    const step = Math.max(1, Math.round(STEP_SECONDS * sampleRate));
    const glide = Math.min(GLIDE_SECONDS * sampleRate, total * 0.45);
    let now = start;
    for (let i = 0; i < total; i++) {
      if (i % step === 0) {
        const along = Math.max(0, (i - glide) / Math.max(1, total - glide));
        now = blend(start, blend(target, end, along), Math.min(1, i / glide));
        tune(now, phoneme);
      }
      const share = i / total;
      const waver =
        1 + voice.roughness * Math.sin(clock * 0.0019) + voice.roughness * noise() * 0.5;
      phase +=
        ((utterance.fromHz + (utterance.toHz - utterance.fromHz) * share) * waver) / sampleRate;
      phase -= Math.floor(phase);
      clock++;
      const air = noise();
      const shut = i < closed;
      const voiced = shut ? now.voice * 0.12 : now.voice;
      const breathy = shut ? 0 : now.breath + voiced * voice.breath * 0.35;
      const source = fold() * voiced + air * breathy * 0.5;
      let sample = 0;
      for (let k = 0; k < resonances.length; k++) {
        sample += (resonances[k] as Resonator).next(source) * (gains[k] as number);
      }
      // A stop bursts as it opens, then fades.
      const burst = closed > 0 ? Math.exp(-(i - closed) / (sampleRate * 0.009)) : 1;
      const hiss = shut ? 0 : now.hiss * burst;
      sample = sample * VOICE_GAIN + hissing.next(air) * hiss * HISS_GAIN;
      output[at + i] =
        (output[at + i] as number) + sample * utterance.strength * edge(i, total, closed);
    }
    from = end;
    return at + total;
  };

  return {
    speak,
    lengthOf: (utterance) => Math.round(utterance.seconds * sampleRate),
    rest: () => {
      from = undefined;
    },
  };

  function edge(i: number, total: number, closed: number): number {
    if (closed > 0) return 1;
    const soft = sampleRate * 0.004;
    return Math.min(1, (i + 1) / soft, (total - i) / soft + 0.35);
  }
}

function positionOf(phoneme: Phoneme, formants: readonly [number, number, number]): Position {
  const [f1, f2, f3] = formants;
  const { voice, breath = 0, hiss = 0 } = phoneme;
  return { f1, f2, f3, voice, breath, hiss };
}

function blend(from: Position, to: Position, share: number): Position {
  const between = (one: number, other: number): number => one + (other - one) * share;
  return {
    f1: between(from.f1, to.f1),
    f2: between(from.f2, to.f2),
    f3: between(from.f3, to.f3),
    voice: between(from.voice, to.voice),
    breath: between(from.breath, to.breath),
    hiss: between(from.hiss, to.hiss),
  };
}
