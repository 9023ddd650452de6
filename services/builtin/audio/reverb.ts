// Adds the reverb of a hall to music and to the audio of videos.

import type { Stereo } from "./dsp.ts";

/** Lengths of the echoes in seconds. No two share a divisor, so that they do not ring together. */
const COMB_SECONDS = [0.0297, 0.0371, 0.0411, 0.0437, 0.0299, 0.0359, 0.0419, 0.0443];
const ALLPASS_SECONDS = [0.005, 0.0017];

/** Adds the reverb of a hall. `send` is its input, `amount` the loudness of its output. */
export function addReverb(
  sound: Stereo,
  send: Stereo,
  sampleRate: number,
  decay: number,
  amount: number,
): void {
  const half = COMB_SECONDS.length / 2;
  [sound.left, sound.right].forEach((output, side) => {
    const input = side === 0 ? send.left : send.right;
    const echoes = new Float32Array(output.length);
    for (const seconds of COMB_SECONDS.slice(side * half, (side + 1) * half)) {
      comb(input, echoes, Math.round(seconds * sampleRate), decay);
    }
    for (const seconds of ALLPASS_SECONDS) allpass(echoes, Math.round(seconds * sampleRate));
    for (let i = 0; i < output.length; i++) {
      output[i] = (output[i] as number) + (echoes[i] as number) * amount;
    }
  });
}

function comb(input: Float32Array, output: Float32Array, delay: number, decay: number): void {
  const line = new Float32Array(delay);
  let at = 0;
  let dull = 0;
  for (let i = 0; i < input.length; i++) {
    const echo = line[at] as number;
    dull += (echo - dull) * 0.6;
    line[at] = (input[i] as number) + dull * decay;
    output[i] = (output[i] as number) + echo * 0.25;
    at = at + 1 === delay ? 0 : at + 1;
  }
}

function allpass(samples: Float32Array, delay: number): void {
  const line = new Float32Array(delay);
  let at = 0;
  for (let i = 0; i < samples.length; i++) {
    const kept = line[at] as number;
    const sample = samples[i] as number;
    line[at] = sample + kept * 0.5;
    samples[i] = kept - sample * 0.5;
    at = at + 1 === delay ? 0 : at + 1;
  }
}
