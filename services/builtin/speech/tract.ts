// Computes the samples of a voice that speaks or sings one phoneme after another.

import { createNoiseSource, Resonator } from "../audio/dsp.ts";
import type { Phoneme } from "./phonemes.ts";
import type { Voice } from "./voice.ts";

/** One phoneme with its length and the pitch at its start and end. */
export type Utterance = {
  readonly phoneme: Phoneme;
  readonly seconds: number;
  readonly fromHz: number;
  readonly toHz: number;
  /** Loudness of the whole phoneme, about 1. */
  readonly strength: number;
};

/** Seconds between two changes of the mouth's position. */
const STEP_SECONDS = 0.004;
/** A phoneme's resonances come from the one before within this time at most. */
const GLIDE_SECONDS = 0.045;
const WIDTHS_HZ = [80, 110, 170, 260] as const;
/** Loudness of each resonance. The signs keep neighbours from cancelling between them. */
const GAINS = [1, -1, 0.8, -0.5] as const;
/** A resonance at this frequency keeps its gain. Higher ones gain, as audio leaves the lips. */
const EVEN_HZ = 500;
/** The fourth resonance hardly moves. */
const FOURTH_HZ = 3500;
const VOICE_GAIN = 1.5;
const HISS_GAIN = 0.9;
/** No resonance is above this share of the sample rate, because it could not be heard. */
const HIGHEST_SHARE = 0.45;
const BURST_SECONDS = 0.009;
/** Phonemes other than stops begin and end softly within this time. */
const EDGE_SECONDS = 0.004;

/** Three resonances in Hz, then the loudness of voice, breath and hiss. */
type Position = readonly number[];

/**
 * A mouth that speaks one phoneme after another and remembers its position between them. Mouths of equal voice and seed that speak the
 * same make equal samples.
 */
export class Tract {
  readonly #voice: Voice;
  readonly #sampleRate: number;
  readonly #noise: () => number;
  readonly #resonances = WIDTHS_HZ.map(() => new Resonator());
  readonly #gains: number[] = [...GAINS];
  readonly #hissing = new Resonator();
  #from: Position | undefined;
  #phase = 0;
  #clock = 0;

  constructor(voice: Voice, sampleRate: number, seed: number) {
    this.#voice = voice;
    this.#sampleRate = sampleRate;
    this.#noise = createNoiseSource(seed);
    this.#tune(3, FOURTH_HZ);
  }

  /** Lets the mouth rest. The next phoneme starts from its own position. */
  rest(): void {
    this.#from = undefined;
  }

  /** Adds the phoneme's samples to `output` from `at` on. Answers the next position. */
  speak(utterance: Utterance, output: Float32Array, at: number): number {
    const { phoneme, strength, fromHz, toHz } = utterance;
    const rate = this.#sampleRate;
    const total = Math.round(utterance.seconds * rate);
    const closureMs = phoneme.closureMs ?? 0;
    const closed = Math.round((total * closureMs) / (phoneme.lengthMs + closureMs));
    const target = positionOf(phoneme, phoneme.formants);
    const end = positionOf(phoneme, phoneme.glideTo ?? phoneme.formants);
    const start = this.#from ?? [...phoneme.formants, 0, 0, 0];
    const step = Math.max(1, Math.round(STEP_SECONDS * rate));
    const glide = Math.min(GLIDE_SECONDS * rate, total * 0.45);
    let now = start;
    for (let i = 0; i < total; i++) {
      if (i % step === 0) {
        const along = Math.max(0, (i - glide) / Math.max(1, total - glide));
        now = blend(start, blend(target, end, along), Math.min(1, i / glide));
        this.#move(now, phoneme);
      }
      const hz = fromHz + ((toHz - fromHz) * i) / total;
      const open = i < closed ? 0 : 1;
      // A stop bursts as it opens, then fades.
      const burst = closed > 0 ? open * Math.exp(-(i - closed) / (rate * BURST_SECONDS)) : 1;
      const edge = closed > 0 ? 1 : edgeAt(i, total, rate * EDGE_SECONDS);
      const sample = this.#sample(now, hz, open, burst);
      output[at + i] = (output[at + i] as number) + sample * strength * edge;
    }
    this.#from = end;
    return at + total;
  }

  /** One sample: the folds' pulse and breath through the resonances, and the hiss at the teeth. */
  #sample(position: Position, hz: number, open: number, burst: number): number {
    const { roughness, breath } = this.#voice;
    const [, , , voice = 0, breathing = 0, hiss = 0] = position;
    const waver = 1 + roughness * (Math.sin(this.#clock * 0.0019) + this.#noise() * 0.5);
    this.#phase += (hz * waver) / this.#sampleRate;
    this.#phase -= Math.floor(this.#phase);
    this.#clock++;
    const air = this.#noise();
    const voiced = voice * (open === 0 ? 0.12 : 1);
    const breathy = open * (breathing + voiced * breath * 0.35);
    const source = foldPulse(this.#phase) * voiced + air * breathy * 0.5;
    let sum = 0;
    for (let k = 0; k < this.#resonances.length; k++) {
      sum += (this.#resonances[k] as Resonator).next(source) * (this.#gains[k] as number);
    }
    return sum * VOICE_GAIN + this.#hissing.next(air) * hiss * burst * HISS_GAIN;
  }

  #move(position: Position, phoneme: Phoneme): void {
    for (let k = 0; k < 3; k++) this.#tune(k, position[k] as number);
    const centre = Math.min(phoneme.hissHz ?? 4000, this.#sampleRate * HIGHEST_SHARE);
    this.#hissing.tune(centre, phoneme.hissWidthHz ?? 1500, this.#sampleRate);
  }

  #tune(index: number, hz: number): void {
    const centre = Math.min(hz * this.#voice.size, this.#sampleRate * HIGHEST_SHARE);
    const width = WIDTHS_HZ[index] as number;
    (this.#resonances[index] as Resonator).tune(centre, width, this.#sampleRate);
    this.#gains[index] = (GAINS[index] as number) * Math.sqrt(centre / EVEN_HZ);
  }
}

/** The vocal folds at a phase of 0 to 1. They open slowly, close quickly, then stay closed. */
function foldPulse(phase: number): number {
  const open = 0.62;
  if (phase > open) return -0.15;
  const share = phase / open;
  return share * share * (3 - 4.2 * share) * 1.6;
}

function edgeAt(i: number, total: number, soft: number): number {
  return Math.min(1, (i + 1) / soft, (total - i) / soft + 0.35);
}

function positionOf(phoneme: Phoneme, formants: readonly [number, number, number]): Position {
  const { voice, breath = 0, hiss = 0 } = phoneme;
  return [...formants, voice, breath, hiss];
}

function blend(from: Position, to: Position, share: number): Position {
  return from.map((value, index) => value + ((to[index] as number) - value) * share);
}
