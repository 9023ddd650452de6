// Measures the length of a WAV by its bytes, and refuses one whose samples are compressed audio.

import { hasFramesOfCodec } from "./frames.ts";
import { maxSamplesASecond, maxSoundChannels, maxSoundRate } from "./limits.ts";

/** PCM, floats, A-law, µ-law: a sample has as many bytes as the head states. Other formats are compressed, in blocks of their own. */
const plainFormats: ReadonlySet<number> = new Set([1, 3, 6, 7]);
/** The format is in an extension of the head. */
const extensible = 0xfffe;
/** Names of chunks that describe audio in other ways. */
const otherHeads: ReadonlySet<string> = new Set(["XMA2", "SMV0", "ds64"]);
/** Bytes of a chunk's name and size. */
const wavChunkHead = 8;
/** Chunks before the samples. A file has a few, with its format and its origin. */
const maxWavChunks = 1_000;

/**
 * Seconds of a WAV: all bytes behind the head of its samples, as samples. The size in that head is ignored, because decoders read on
 * behind it, even into a second chunk of samples. Undefined where it is no WAV, or has no plain samples. The first `lookedThroughBytes`
 * of these are searched for a codec.
 */
export function lengthOfWav(bytes: Buffer, lookedThroughBytes: number): number | undefined {
  const found = samplesOfWav(bytes);
  if (!found) return undefined;
  const samples = bytes.subarray(found.at);
  if (hasFramesOfCodec(samples.subarray(0, lookedThroughBytes))) return undefined;
  return samples.length / (found.facts.rate * found.facts.blockBytes);
}

/** The samples of a WAV. */
interface WavSamples {
  facts: WavFacts;
  /** The place of their first byte. */
  at: number;
}

/** Finds the samples of a WAV. Undefined where it is no WAV, or has none of a plain format. */
function samplesOfWav(bytes: Buffer): WavSamples | undefined {
  if (bytes.toString("latin1", 8, 12) !== "WAVE") return undefined;
  let facts: WavFacts | undefined;
  let at = 12;
  for (let chunks = 0; chunks < maxWavChunks && at + wavChunkHead <= bytes.length; chunks++) {
    const name = bytes.toString("latin1", at, at + 4);
    const size = bytes.readUInt32LE(at + 4);
    const body = at + wavChunkHead;
    // With such a chunk, decoders read another head in place of the usual one.
    if (otherHeads.has(name)) return undefined;
    if (name === "data") return facts && { facts, at: body };
    if (name === "fmt ") {
      // Decoders differ in which of two heads counts.
      if (facts || size < 16 || body + size > bytes.length) return undefined;
      facts = factsOfWav(bytes.subarray(body, body + size));
      if (!facts) return undefined;
    }
    at = body + size + (size % 2);
  }
  return undefined;
}

/** The form of the samples. */
interface WavFacts {
  rate: number;
  blockBytes: number;
}

/** The form of the samples in the head of a WAV. Undefined where it makes no sense. */
function factsOfWav(head: Buffer): WavFacts | undefined {
  const written = head.readUInt16LE(0);
  const format = written === extensible && head.length >= 26 ? head.readUInt16LE(24) : written;
  const [channels, rate] = [head.readUInt16LE(2), head.readUInt32LE(4)];
  const [blockBytes, bits] = [head.readUInt16LE(12), head.readUInt16LE(14)];
  const isLaw = format === 6 || format === 7;
  const isPlain = isLaw ? bits === 8 : bits % 8 === 0 && bits > 0 && bits <= 64;
  if (!isPlain || !plainFormats.has(format)) return undefined;
  if (channels === 0 || channels > maxSoundChannels) return undefined;
  if (rate === 0 || rate > maxSoundRate || rate * channels > maxSamplesASecond) return undefined;
  // Some decoders use the one value, some the other.
  if (blockBytes !== (channels * bits) / 8) return undefined;
  return { rate, blockBytes };
}
