import { createStereo, type Stereo } from "../audio/dsp.ts";
import { type Patch, type PatchName, patchOf } from "./patches.ts";
import { frequencyOf } from "./theory.ts";

/** One note of an instrument; times in seconds, loudness 0 to 1, place -1 (left) to 1. */
export type Note = {
  readonly start: number;
  readonly length: number;
  readonly midi: number;
  readonly loudness: number;
  readonly place: number;
};

/** Where all players sound: the direct sound, and what goes into the hall. */
export type Mix = { readonly dry: Stereo; readonly wet: Stereo; readonly sampleRate: number };

/** Creates a silent mix. */
export function createMix(seconds: number, sampleRate: number): Mix {
  const length = Math.ceil(seconds * sampleRate);
  return { dry: createStereo(length), wet: createStereo(length), sampleRate };
}

const TABLE_SIZE = 2048;
/** Partials above this frequency are left out, so that none folds back as a false tone. */
const HIGHEST_HZ = 16_000;

/** Plays notes of one instrument into a mix; its waves are worked out once. */
export type Instrument = { readonly play: (note: Note) => void };

/** Creates an instrument that sounds in `mix`. */
export function createInstrument(name: PatchName, mix: Mix): Instrument {
  const patch = patchOf(name);
  const tables = new Map<number, readonly [Float32Array, Float32Array]>();
  const tablesFor = (frequency: number): readonly [Float32Array, Float32Array] => {
    const partials = Math.max(1, Math.min(16, Math.floor(HIGHEST_HZ / frequency)));
    const known = tables.get(partials) ?? [
      wave(patch.bright, partials),
      wave(patch.dark, partials),
    ];
    tables.set(partials, known);
    return known;
  };
  return {
    play: (note) => {
      const frequency = frequencyOf(note.midi);
      const [bright, dark] = tablesFor(frequency);
      playNote(mix, patch, note, frequency, bright, dark);
    },
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
  for (let i = 0; i <= TABLE_SIZE; i++) table[i] = (table[i] as number) / loudest;
  return table;
}

function playNote(
  mix: Mix,
  patch: Patch,
  note: Note,
  frequency: number,
  bright: Float32Array,
  dark: Float32Array,
): void {
  const { dry, wet, sampleRate } = mix;
  const from = Math.max(0, Math.round(note.start * sampleRate));
  const held = Math.round(note.length * sampleRate);
  const release = Math.round(patch.releaseSeconds * sampleRate);
  const total = Math.min(held + release, dry.left.length - from);
  const attack = Math.max(1, patch.attackSeconds * sampleRate);
  const decay = Math.exp(-1 / (patch.decaySeconds * sampleRate));
  const mellow = Math.exp(-1 / (patch.mellowSeconds * sampleRate));
  const voices = patch.detuneCents.length;
  const phases = patch.detuneCents.map((_, index) => (index * 0.37 + note.midi * 0.13) % 1);
  const steps = patch.detuneCents.map((cents) => (frequency * 2 ** (cents / 1200)) / sampleRate);
  const gain = (patch.gain * note.loudness) / Math.sqrt(voices);
  const toLeft = Math.cos((note.place + 1) * (Math.PI / 4)) * gain;
  const toRight = Math.sin((note.place + 1) * (Math.PI / 4)) * gain;
  let body = 1;
  let shine = 1;
  for (let i = 0; i < total; i++) {
    body *= decay;
    shine *= mellow;
    const rise = i < attack ? i / attack : 1;
    const fall = i < held ? 1 : 1 - (i - held) / release;
    const level = rise * fall * fall * (patch.sustain + (1 - patch.sustain) * body);
    const late = Math.min(1, i / (sampleRate * 0.5));
    const sway = 1 + patch.vibrato * 0.012 * late * Math.sin((i / sampleRate) * 34);
    let sum = 0;
    for (let v = 0; v < voices; v++) {
      let phase = (phases[v] as number) + (steps[v] as number) * sway;
      if (phase >= 1) phase -= 1;
      phases[v] = phase;
      const at = phase * TABLE_SIZE;
      const index = at | 0;
      const share = at - index;
      const low = (dark[index] as number) * (1 - share) + (dark[index + 1] as number) * share;
      const high = (bright[index] as number) * (1 - share) + (bright[index + 1] as number) * share;
      sum += low + (high - low) * shine;
    }
    const sample = sum * level;
    const at = from + i;
    dry.left[at] = (dry.left[at] as number) + sample * toLeft;
    dry.right[at] = (dry.right[at] as number) + sample * toRight;
    wet.left[at] = (wet.left[at] as number) + sample * toLeft * patch.wet;
    wet.right[at] = (wet.right[at] as number) + sample * toRight * patch.wet;
  }
}
