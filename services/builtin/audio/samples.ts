// Writes speech as plain samples, in WAV or PCM. `mp3.ts` does it in MP3.

import type { Mp3Writer } from "./mp3.ts";

const wavHeadBytes = 44;

/**
 * Starts audio of one channel and 16 bits that consists of its samples, behind the head of a WAV or alone. It is written like an MP3.
 */
export function openSamples(sampleRate: number, format: "wav" | "pcm"): Mp3Writer {
  const parts: Buffer[] = [];
  return {
    add([samples = new Float32Array()]) {
      const part = Buffer.allocUnsafe(samples.length * 2);
      for (const [at, sample] of samples.entries()) {
        part.writeInt16LE(Math.round(Math.max(-1, Math.min(1, sample)) * 32_767), at * 2);
      }
      parts.push(part);
    },
    finish() {
      const bytes = parts.reduce((sum, { length }) => sum + length, 0);
      const head = format === "wav" ? [wavHead(sampleRate, bytes)] : [];
      // A copy, like that of an MP3. A thread that hands bytes over no longer has them.
      return new Uint8Array(Buffer.concat([...head, ...parts]));
    },
  };
}

function wavHead(sampleRate: number, bytes: number): Buffer {
  const head = Buffer.alloc(wavHeadBytes);
  head.write("RIFF", 0, "latin1");
  head.writeUInt32LE(wavHeadBytes - 8 + bytes, 4);
  head.write("WAVEfmt ", 8, "latin1");
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(sampleRate, 24);
  head.writeUInt32LE(sampleRate * 2, 28);
  head.writeUInt16LE(2, 32);
  head.writeUInt16LE(16, 34);
  head.write("data", 36, "latin1");
  head.writeUInt32LE(bytes, 40);
  return head;
}
