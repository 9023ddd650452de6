// Makes the samples of each drum. `band.ts` says when it is struck.

import { createNoiseSource, highPass, lowPass } from "../audio/dsp.ts";
import { lay, type Mix } from "./player.ts";

/** Creates a set of drums that plays into `mix`. Each drum's samples are made once, and struck as often as needed. */
export function createDrums(mix: Mix, seed: number) {
  const { sampleRate } = mix;
  const drums = {
    kick: { sound: kick(sampleRate, seed), place: 0, share: 0.02 },
    snare: { sound: snare(sampleRate, seed + 1), place: 0.08, share: 0.3 },
    hat: { sound: metal(sampleRate, seed + 2, 0.07, 7000, 0.32), place: 0.32, share: 0.12 },
    crash: { sound: metal(sampleRate, seed + 3, 1.4, 4200, 0.3), place: -0.3, share: 0.5 },
  };
  return (name: keyof typeof drums, start: number, loudness: number): void => {
    const { sound, place, share } = drums[name];
    lay(mix, sound, Math.round(start * sampleRate), { place, gain: loudness, share });
  };
}

function kick(sampleRate: number, seed: number): Float32Array {
  const noise = createNoiseSource(seed);
  let phase = 0;
  return sampled(sampleRate, 0.38, (time) => {
    phase += (46 + 130 * Math.exp(-time * 34)) / sampleRate;
    const click = Math.exp(-time * 700) * noise() * 0.4;
    return (Math.sin(phase * Math.PI * 2) * Math.exp(-time * 9) + click) * 0.75;
  });
}

function snare(sampleRate: number, seed: number): Float32Array {
  const noise = createNoiseSource(seed);
  const bright = highPass(1400, sampleRate);
  return sampled(sampleRate, 0.26, (time) => {
    const skin = Math.sin(time * 2 * Math.PI * (178 + 60 * Math.exp(-time * 60)));
    const wires = bright(noise()) * Math.exp(-time * 19);
    return skin * Math.exp(-time * 24) * 0.3 + wires * 0.42;
  });
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
  return sampled(sampleRate, seconds, (time) => {
    const fade = Math.exp((-time / seconds) * 5);
    return soft(brighter(bright(noise()))) * fade * gain;
  });
}

/** Samples of `seconds` seconds. `at` gives the sample at a time. */
function sampled(sampleRate: number, seconds: number, at: (time: number) => number): Float32Array {
  const samples = new Float32Array(Math.round(sampleRate * seconds));
  for (let i = 0; i < samples.length; i++) samples[i] = at(i / sampleRate);
  return samples;
}
