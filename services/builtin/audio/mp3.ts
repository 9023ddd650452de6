// Encodes samples as MP3, for music and speech.

import { createMp3Encoder } from "wasm-media-encoders";

/** The form of the MP3. The bit rate is constant, so that players know the length at once. */
export type Mp3Format = {
  readonly sampleRate: 24_000 | 44_100;
  readonly channels: 1 | 2;
  readonly bitrateKbps: 64 | 128 | 160;
};

/** Takes samples as they are made and gives the whole file at the end. */
export type Mp3Writer = {
  /** One array for each channel, samples in [-1, 1]. The caller may use them again afterwards. */
  readonly add: (channels: readonly Float32Array[]) => void;
  readonly finish: () => Uint8Array;
};

/** Starts an MP3. */
export async function openMp3(format: Mp3Format): Promise<Mp3Writer> {
  const encoder = await createMp3Encoder();
  encoder.configure({
    sampleRate: format.sampleRate,
    channels: format.channels,
    bitrate: format.bitrateKbps,
    outputSampleRate: format.sampleRate,
  });
  const parts: Uint8Array[] = [];
  const keep = (part: Uint8Array): void => {
    // The encoder owns its output until its next call.
    if (part.length > 0) parts.push(part.slice());
  };
  return {
    add: (channels) => keep(encoder.encode(channels)),
    finish: () => {
      keep(encoder.finalize());
      // A copy, because small buffers share their memory with others. A thread that hands bytes over no longer has them.
      return new Uint8Array(Buffer.concat(parts));
    },
  };
}
