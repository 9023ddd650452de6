// The operations on samples that music, speech and the audio of videos share.

/** A fast repeatable noise source with values in [-1, 1). */
export function createNoiseSource(seed: number): () => number {
  let state = seed | 1;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) | 0;
    return state / 2147483648;
  };
}

/** A filter with memory: each call takes one sample and gives one. */
export type Filter = (sample: number) => number;

/** Lets frequencies below `cutoffHz` through, 6 dB an octave. */
export function lowPass(cutoffHz: number, sampleRate: number): Filter {
  const share = 1 - Math.exp((-2 * Math.PI * cutoffHz) / sampleRate);
  let value = 0;
  return (sample) => {
    value += (sample - value) * share;
    return value;
  };
}

/** Lets frequencies above `cutoffHz` through, 6 dB an octave. */
export function highPass(cutoffHz: number, sampleRate: number): Filter {
  const low = lowPass(cutoffHz, sampleRate);
  return (sample) => sample - low(sample);
}

/** A resonance whose frequency can be moved during a tone: gain 1 at its centre, and less around it. */
export class Resonator {
  #gain = 0;
  #first = 0;
  #second = 0;
  #last = 0;
  #before = 0;
  #lastIn = 0;
  #beforeIn = 0;

  /** Sets the centre and the width in Hz. */
  tune(frequencyHz: number, widthHz: number, sampleRate: number): void {
    const radius = Math.exp((-Math.PI * widthHz) / sampleRate);
    this.#second = -radius * radius;
    this.#first = 2 * radius * Math.cos((2 * Math.PI * frequencyHz) / sampleRate);
    this.#gain = (1 - radius * radius) / 2;
  }

  /** Takes one sample and gives one. */
  next(sample: number): number {
    const driven = this.#gain * (sample - this.#beforeIn);
    const value = driven + this.#first * this.#last + this.#second * this.#before;
    this.#beforeIn = this.#lastIn;
    this.#lastIn = sample;
    this.#before = this.#last;
    this.#last = value;
    return value;
  }
}

/** Two channels of samples in [-1, 1]. */
export type Stereo = { readonly left: Float32Array; readonly right: Float32Array };

/** Silence of a length in samples. */
export function createStereo(length: number): Stereo {
  return { left: new Float32Array(length), right: new Float32Array(length) };
}

/** Scales both channels to a peak and rounds off parts that would be too loud. */
export function master(sound: Stereo, peak: number): void {
  let loudest = 1e-6;
  for (const channel of [sound.left, sound.right]) {
    for (let i = 0; i < channel.length; i++) {
      const size = Math.abs(channel[i] as number);
      if (size > loudest) loudest = size;
    }
  }
  // Some overdrive: quiet passages get louder, and the rare peak is rounded.
  const gain = Math.min(1.6 / loudest, 12);
  for (const channel of [sound.left, sound.right]) {
    for (let i = 0; i < channel.length; i++) {
      channel[i] = Math.tanh((channel[i] as number) * gain) * (peak / Math.tanh(1.6));
    }
  }
}

/** Fades the ends so that the audio neither starts nor stops with a click. */
export function fadeEnds(channel: Float32Array, inSamples: number, outSamples: number): void {
  for (let i = 0; i < Math.min(inSamples, channel.length); i++) {
    channel[i] = (channel[i] as number) * (i / inSamples);
  }
  for (let i = 0; i < Math.min(outSamples, channel.length); i++) {
    const at = channel.length - 1 - i;
    channel[at] = (channel[at] as number) * (i / outSamples);
  }
}
