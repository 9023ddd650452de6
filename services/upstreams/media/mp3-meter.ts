// Measures music and speech in MP3 while it passes on to the store, for `store-output.ts`.

import { isFrameOfFacts, mp3FrameAt } from "#kit/sound/mp3-frame.ts";
import { failed } from "./faults.ts";
import { type MediaFacts, type Meter, roundedSeconds } from "./meter.ts";

/**
 * Measures an MP3 by the headers of its frames as they pass. Apart from tags and padding it must consist of whole frames of layer III.
 * A last frame that is cut short, as some encoders leave it, is allowed.
 */
export function createMp3Meter(): Meter {
  return new Mp3Meter();
}

class Mp3Meter implements Meter {
  /** Bytes that are not understood yet: at most a header and the data that a descriptive frame needs. */
  #pending: Buffer = Buffer.alloc(0);
  /** Bytes of the frame or tag that are still to come. */
  #skipBytes = 0;
  #frames = 0;
  #seconds = 0;
  /** Set behind a tag that marks the end. The bytes after it are ignored. */
  #isOver = false;

  push(chunk: Uint8Array): void {
    if (this.#isOver) return;
    const skipped = Math.min(this.#skipBytes, chunk.length);
    this.#skipBytes -= skipped;
    if (skipped === chunk.length) return;
    this.#pending = Buffer.concat([this.#pending, chunk.subarray(skipped)]);
    this.#pending = this.#pending.subarray(this.#read(longestHeadBytes));
  }

  end(): MediaFacts {
    this.#read(4);
    if (this.#frames < 2) throw failed("the bytes are no MP3");
    return { width: 0, height: 0, durationSeconds: roundedSeconds(this.#seconds) };
  }

  /** Goes from frame to frame while `least` bytes of the next are there. Answers how far it came. */
  #read(least: number): number {
    let at = 0;
    while (!this.#isOver && this.#pending.length - at >= least) {
      at += this.#step(at);
      if (at <= this.#pending.length) continue;
      this.#skipBytes = at - this.#pending.length;
      return this.#pending.length;
    }
    return Math.min(at, this.#pending.length);
  }

  /** Bytes of the frame or tag that begins at a place. */
  #step(at: number): number {
    const tagBytes = tagBytesAt(this.#pending, at);
    if (tagBytes !== undefined) {
      this.#isOver = tagBytes === Number.POSITIVE_INFINITY;
      return this.#isOver ? 0 : tagBytes;
    }
    const frame = mp3FrameAt(this.#pending, at);
    if (frame) {
      this.#frames++;
      if (!isFrameOfFacts(this.#pending, at, frame)) this.#seconds += frame.seconds;
      return frame.bytes;
    }
    if (this.#pending[at] === 0 && this.#frames > 0) return 1;
    throw failed("the bytes are no MP3");
  }
}

/** A frame's header, its side information and the name of a descriptive frame. */
const longestHeadBytes = 4 + 32 + 4;

/** Bytes of the tag at a place. Infinite for a tag that can only be at the end. Undefined: none. */
function tagBytesAt(bytes: Buffer, at: number): number | undefined {
  const name = bytes.toString("latin1", at, at + 8);
  if (name.startsWith("TAG") || name === "APETAGEX" || name.startsWith("LYRICS")) {
    return Number.POSITIVE_INFINITY;
  }
  if (!name.startsWith("ID3") || bytes.length < at + 10) return undefined;
  // Seven bits a byte. A footer repeats the header.
  const size = [6, 7, 8, 9].reduce((sum, place) => sum * 128 + ((bytes[at + place] ?? 0) & 127), 0);
  const hasFooter = ((bytes[at + 5] ?? 0) & 0x10) !== 0;
  return 10 + size + (hasFooter ? 10 : 0);
}
