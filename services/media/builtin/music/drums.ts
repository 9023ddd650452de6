import { createNoiseSource, highPass, lowPass } from "../audio/dsp.ts";
import type { Mix } from "./player.ts";

export type DrumName = "kick" | "snare" | "hat" | "crash";

/** A set of drums, each sound made once and then struck as often as needed. */
export type Drums = {
  readonly strike: (name: DrumName, start: number, loudness: number) => void;
};

const PLACES: Record<DrumName, number> = { kick: 0, snare: 0.08, hat: 0.32, crash: -0.3 };
const WET: Record<DrumName, number> = { kick: 0.02, snare: 0.3, hat: 0.12, crash: 0.5 };

/** Creates a set that sounds in `mix`. */
export function createDrums(mix: Mix, seed: number): Drums {
  const { sampleRate } = mix;
  const sounds: Record<DrumName, Float32Array> = {
    kick: kick(sampleRate, seed),
    snare: snare(sampleRate, seed + 1),
    hat: metal(sampleRate, seed + 2, 0.07, 7000, 0.32),
    crash: metal(sampleRate, seed + 3, 1.4, 4200, 0.3),
  };
  return {
    strike: (name, start, loudness) => {
      const sound = sounds[name];
      const from = Math.round(start * sampleRate);
      const toLeft = Math.cos((PLACES[name] + 1) * (Math.PI / 4)) * loudness;
      const toRight = Math.sin((PLACES[name] + 1) * (Math.PI / 4)) * loudness;
      const { dry, wet } = mix;
      const total = Math.min(sound.length, dry.left.length - from);
      for (let i = 0; i < total; i++) {
        const sample = sound[i] as number;
        const at = from + i;
        dry.left[at] = (dry.left[at] as number) + sample * toLeft;
        dry.right[at] = (dry.right[at] as number) + sample * toRight;
        wet.left[at] = (wet.left[at] as number) + sample * toLeft * WET[name];
        wet.right[at] = (wet.right[at] as number) + sample * toRight * WET[name];
      }
    },
  };
}

function kick(sampleRate: number, seed: number): Float32Array {
  const noise = createNoiseSource(seed);
  const samples = new Float32Array(Math.round(sampleRate * 0.38));
  let phase = 0;
  for (let i = 0; i < samples.length; i++) {
    const time = i / sampleRate;
    phase += (46 + 130 * Math.exp(-time * 34)) / sampleRate;
    const click = Math.exp(-time * 700) * noise() * 0.4;
    samples[i] = (Math.sin(phase * Math.PI * 2) * Math.exp(-time * 9) + click) * 0.75;
  }
  return samples;
}

function snare(sampleRate: number, seed: number): Float32Array {
  const noise = createNoiseSource(seed);
  const bright = highPass(1400, sampleRate);
  const samples = new Float32Array(Math.round(sampleRate * 0.26));
  for (let i = 0; i < samples.length; i++) {
    const time = i / sampleRate;
    const skin = Math.sin(time * 2 * Math.PI * (178 + 60 * Math.exp(-time * 60)));
    const wires = bright(noise()) * Math.exp(-time * 19);
    samples[i] = skin * Math.exp(-time * 24) * 0.3 + wires * 0.42;
  }
  return samples;
}

function metal(
  sampleRate: number,
  seed: number,
  seconds: number,
  cutoffHz: number,
  gain: number,
): Float32Array {
  const noise = createNoiseSource(seed);
  const bright = highPass(cutoffHz, sampleRate);
  const brighter = highPass(cutoffHz, sampleRate);
  const soft = lowPass(13_000, sampleRate);
  const samples = new Float32Array(Math.round(sampleRate * seconds));
  for (let i = 0; i < samples.length; i++) {
    const fade = Math.exp((-i / samples.length) * 5);
    samples[i] = soft(brighter(bright(noise()))) * fade * gain;
  }
  return samples;
}
