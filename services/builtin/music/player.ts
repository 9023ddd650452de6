// Plays single notes of instruments into a mix. All players share its mix: band, drums, singer.

import { createStereo, type Stereo } from "../audio/dsp.ts";
import { type Patch, type PatchName, patches } from "./patches.ts";
import { frequencyOf } from "./theory.ts";

/** One note of an instrument. Times are in seconds, loudness is 0 to 1, place is -1 (left) to 1. */
export interface Note {
  readonly start: number;
  readonly length: number;
  readonly midi: number;
  readonly loudness: number;
  readonly place: number;
}

/** The output of all players: the direct audio, and the part that is sent into the hall. */
export interface Mix {
  readonly dry: Stereo;
  readonly wet: Stereo;
  readonly sampleRate: number;
}

/** Creates a silent mix. */
export function createMix(seconds: number, sampleRate: number): Mix {
  const length = Math.ceil(seconds * sampleRate);
  return { dry: createStereo(length), wet: createStereo(length), sampleRate };
}

/**
 * Adds samples to a mix from a sample on, at a place (-1 left to 1 right). `gain` is their loudness there, `share` the part that is
 * sent into the hall.
 */
export function lay(
  { dry, wet }: Mix,
  samples: Float32Array,
  from: number,
  { place, gain, share }: { place: number; gain: number; share: number },
): void {
  const toLeft = Math.cos((place + 1) * (Math.PI / 4)) * gain;
  const toRight = Math.sin((place + 1) * (Math.PI / 4)) * gain;
  const count = Math.min(samples.length, dry.left.length - from);
  for (let i = 0, at = from; i < count; i++, at++) {
    const left = (samples[i] as number) * toLeft;
    const right = (samples[i] as number) * toRight;
    dry.left[at] = (dry.left[at] as number) + left;
    dry.right[at] = (dry.right[at] as number) + right;
    wet.left[at] = (wet.left[at] as number) + left * share;
    wet.right[at] = (wet.right[at] as number) + right * share;
  }
}

const TABLE_SIZE = 2048;
/** Partials above this frequency are left out, so that none folds back as a false tone. */
const HIGHEST_HZ = 16_000;
/** The sway of a tone is computed again after this many samples. */
const BLOCK = 64;
/** Sway at full vibrato as a share of the pitch, and its pace in radians a second. */
const VIBRATO_DEPTH = 0.012;
const VIBRATO_SPEED = 34;

/** One period of a wave when it is struck, and once it has mellowed. */
type Waves = readonly [bright: Float32Array, dark: Float32Array];

/** Creates an instrument that plays notes into `mix`. Its waves are computed once. */
export function createInstrument(name: PatchName, mix: Mix): (note: Note) => void {
  const patch: Patch = patches[name];
  const tables = new Map<number, Waves>();
  const wavesOf = (frequency: number): Waves => {
    const partials = Math.max(1, Math.min(16, Math.floor(HIGHEST_HZ / frequency)));
    const { bright, dark } = patch.wave;
    const waves = tables.get(partials) ?? [wave(bright, partials), wave(dark, partials)];
    tables.set(partials, waves);
    return waves;
  };
  return (note) => {
    const { dry, sampleRate } = mix;
    const from = Math.max(0, Math.round(note.start * sampleRate));
    const held = Math.round(note.length * sampleRate);
    const release = Math.round(patch.note.release * sampleRate);
    const total = Math.min(held + release, dry.left.length - from);
    if (total <= 0) return;
    const frequency = frequencyOf(note.midi);
    const tone = new Float32Array(total);
    for (const [index, cents] of patch.detuneCents.entries()) {
      const step = (TABLE_SIZE * frequency * 2 ** (cents / 1200)) / sampleRate;
      const start = ((index * 0.37 + note.midi * 0.13) % 1) * TABLE_SIZE;
      addVoice(tone, wavesOf(frequency), step, start, patch, sampleRate);
    }
    shape(tone, patch.note, held, sampleRate);
    const gain = (patch.gain * note.loudness) / Math.sqrt(patch.detuneCents.length);
    lay(mix, tone, from, { place: note.place, gain, share: patch.wet });
  };
}

function wave(partials: readonly number[], count: number): Float32Array {
  const table = new Float32Array(TABLE_SIZE + 1);
  let loudest = 0;
  for (let i = 0; i <= TABLE_SIZE; i++) {
    let sum = 0;
    for (let k = 0; k < Math.min(count, partials.length); k++) {
      // Turning every other partial keeps the wave's peak low for its loudness.
      const turn = k % 2 === 0 ? 0 : Math.PI / 3;
      sum += (partials[k] as number) * Math.sin((i / TABLE_SIZE) * Math.PI * 2 * (k + 1) + turn);
    }
    table[i] = sum;
    loudest = Math.max(loudest, Math.abs(sum));
  }
  return table.map((value) => value / loudest);
}

/** Adds one copy of the wave, bright at first and then darker and darker, swaying where the patch does. */
function addVoice(
  tone: Float32Array,
  [bright, dark]: Waves,
  step: number,
  start: number,
  patch: Patch,
  sampleRate: number,
): void {
  const mellow = Math.exp(-1 / (patch.wave.mellow * sampleRate));
  let at = start;
  let shine = 1;
  for (let block = 0; block < tone.length; block += BLOCK) {
    const seconds = block / sampleRate;
    const depth = patch.vibrato * VIBRATO_DEPTH * Math.min(1, seconds * 2);
    const move = step * (1 + depth * Math.sin(seconds * VIBRATO_SPEED));
    const end = Math.min(block + BLOCK, tone.length);
    for (let i = block; i < end; i++) {
      at += move;
      if (at >= TABLE_SIZE) at -= TABLE_SIZE;
      const index = at | 0;
      const share = at - index;
      const low = dark[index] as number;
      const soft = low + ((dark[index + 1] as number) - low) * share;
      const high = bright[index] as number;
      const sharp = high + ((bright[index + 1] as number) - high) * share;
      shine *= mellow;
      tone[i] = (tone[i] as number) + soft + (sharp - soft) * shine;
    }
  }
}

/** Gives a tone its beginning and its end. Its key is held for `held` samples. */
function shape(tone: Float32Array, note: Patch["note"], held: number, sampleRate: number): void {
  const attack = Math.max(1, note.attack * sampleRate);
  const decay = Math.exp(-1 / (note.decay * sampleRate));
  const release = Math.max(1, note.release * sampleRate);
  let body = 1;
  for (let i = 0; i < tone.length; i++) {
    body *= decay;
    const rise = i < attack ? i / attack : 1;
    const fall = i < held ? 1 : 1 - (i - held) / release;
    const level = rise * fall * fall * (note.sustain + (1 - note.sustain) * body);
    tone[i] = (tone[i] as number) * level;
  }
}
