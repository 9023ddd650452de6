import { hasFramesOfCodec } from "#kit/sound/frames.ts";
import { maxWavChunks, samplesOfWav, type WavFacts, wavChunkHead } from "#kit/sound/wav.ts";
import type { TakenSound } from "./length.ts";
import { isOtherThanWav } from "./other-forms.ts";

/** Bytes of a head with nothing but what the samples are, and their size. */
const headBytes = 44;
/** A chunk's name: four letters, digits or spaces. */
const chunkName = /^[A-Za-z0-9_ ]{4}$/;

/**
 * Takes a WAV: the bytes behind the head of its samples, as samples. A size that stands there counts where nothing but other chunks
 * stands behind them: writers that cannot go back leave any. What goes up is a head of ours and these samples. Undefined
 * where it is none, or not plain samples.
 */
export function takeWav(bytes: Buffer<ArrayBuffer>): TakenSound | undefined {
  const found = samplesOfWav(bytes);
  if (!found) return undefined;
  const { facts, at, size } = found;
  const blocks = Math.floor((endOfSamples(bytes, at, size) - at) / facts.blockBytes);
  const samples = bytes.subarray(at, at + blocks * facts.blockBytes);
  if (blocks === 0 || hasFramesOfCodec(samples)) return undefined;
  const whole = bytes.subarray(at - headBytes, at + samples.length);
  whole.set(headOf(facts, samples.length));
  if (isOtherThanWav(whole)) return undefined;
  return { seconds: blocks / facts.rate, bytes: whole, ending: "wav" };
}

/** Where samples end that begin at a place and are said to be so long. */
function endOfSamples(bytes: Buffer, from: number, size: number): number {
  let at = from + size + (size % 2);
  if (size === 0 || at >= bytes.length)
    return Math.min(bytes.length, from + (size || bytes.length));
  for (let chunks = 0; chunks < maxWavChunks && at + wavChunkHead <= bytes.length; chunks++) {
    const name = bytes.toString("latin1", at, at + 4);
    // Samples in two chunks are all of them.
    if (!chunkName.test(name) || name === "data" || name === "fmt ") break;
    const bodyBytes = bytes.readUInt32LE(at + 4);
    at += wavChunkHead + bodyBytes + (bodyBytes % 2);
    if (at === bytes.length || at === bytes.length + 1) return from + size;
  }
  return bytes.length;
}

function headOf({ format, channels, rate, blockBytes, bits }: WavFacts, samples: number): Buffer {
  const head = Buffer.alloc(headBytes);
  head.write("RIFF");
  head.writeUInt32LE(headBytes - 8 + samples, 4);
  head.write("WAVEfmt ", 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(format, 20);
  head.writeUInt16LE(channels, 22);
  head.writeUInt32LE(rate, 24);
  head.writeUInt32LE(rate * blockBytes, 28);
  head.writeUInt16LE(blockBytes, 32);
  head.writeUInt16LE(bits, 34);
  head.write("data", 36);
  head.writeUInt32LE(samples, 40);
  return head;
}
