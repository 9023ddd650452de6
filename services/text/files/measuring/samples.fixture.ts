// Audio files, right and wrong ones, for tests of how their length is measured.

/** The facts in the head of a WAV. */
export interface SampleWav {
  code: number;
  channels: number;
  rate: number;
  bits: number;
  bytesPerSecond: number;
  /** Bytes of samples, according to the head. */
  claimed: number;
}

/** A WAV with this many bytes of silence. By default it has 8,000 samples a second, of a byte each. */
export function wavOf(samples: number, said: Partial<SampleWav> = {}): Buffer<ArrayBuffer> {
  const { code = 1, channels = 1, rate = 8_000, bits = 8, claimed = samples } = said;
  const block = (channels * bits) / 8;
  const head = Buffer.alloc(44);
  head.write("RIFF", 0);
  head.writeUInt32LE(36 + samples, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(code, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(said.bytesPerSecond ?? rate * block, 28);
  head.writeUInt16LE(block, 32);
  head.writeUInt16LE(bits, 34);
  head.write("data", 36);
  head.writeUInt32LE(claimed, 40);
  return Buffer.concat([head, Buffer.alloc(samples, 128)]);
}
