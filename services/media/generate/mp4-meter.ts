import { failed } from "./faults.ts";
import { videoSanity } from "./limits.ts";
import { type MediaFacts, type Meter, roundedSeconds } from "./meter.ts";
import { headAt } from "./mp4-boxes.ts";
import { fragmentDuration, type Mp4Index, readMp4Index } from "./mp4-index.ts";

/**
 * Measures an MP4 of `askedSeconds` by its boxes as they pass: `ftyp` first, every box whole to the last byte, an index
 * with a picture in a known codec, and media that holds all frames of the index. The frames themselves are not decoded.
 */
export function createMp4Meter(askedSeconds: number): Meter {
  return new Mp4Meter(askedSeconds);
}

interface PassingBox {
  type: string;
  leftBytes: number;
  parts: Buffer[];
}

const kept: ReadonlySet<string> = new Set(["moov", "moof"]);

class Mp4Meter implements Meter {
  readonly #askedSeconds: number;
  /** What has come of the next box's header. */
  #head: Buffer = Buffer.alloc(0);
  /** The box that is passing, and how much of it is still to come; without end where it has no size. */
  #box: PassingBox | undefined;
  #isFirst = true;
  #index: Mp4Index | undefined;
  #mediaBytes = 0;
  #fragmentUnits = 0;

  constructor(askedSeconds: number) {
    this.#askedSeconds = askedSeconds;
  }

  push(chunk: Uint8Array): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let at = 0; at < bytes.length; ) {
      at += this.#box ? this.#pass(this.#box, bytes.subarray(at)) : this.#open(bytes.subarray(at));
    }
  }

  end(): MediaFacts {
    if (this.#box && this.#box.leftBytes !== Number.POSITIVE_INFINITY) {
      throw failed("the video breaks off");
    }
    if (this.#head.length > 0 || !this.#index) throw failed("the video breaks off");
    const { width, height, timescale, frames, frameBytes } = this.#index;
    const durationSeconds = this.#index.durationSeconds || this.#fragmentUnits / timescale;
    if (frames === 0 && this.#fragmentUnits === 0) throw failed("the video has no frames");
    if (this.#mediaBytes === 0 || this.#mediaBytes < frameBytes)
      throw failed("the video breaks off");
    const side = Math.max(width, height);
    if (width < 1 || height < 1 || side > videoSanity.longestSide) {
      throw failed("the video's size makes no sense");
    }
    const least = this.#askedSeconds * videoSanity.leastShare;
    if (durationSeconds <= 0 || durationSeconds < least || durationSeconds > videoSanity.longest) {
      throw failed("the video's length makes no sense");
    }
    return { width, height, durationSeconds: roundedSeconds(durationSeconds) };
  }

  /** Reads on in a header; answers how many bytes it took. */
  #open(bytes: Buffer): number {
    // A long size comes behind the 8 bytes that every header has.
    const headBytes = this.#head.length < 8 ? 8 : 16;
    const wanted = Math.min(bytes.length, headBytes - this.#head.length);
    this.#head = Buffer.concat([this.#head, bytes.subarray(0, wanted)]);
    const head = headAt(this.#head, 0);
    if (!head) return wanted;
    const { type, size } = head;
    if (this.#isFirst && type !== "ftyp") throw failed("the bytes are no MP4");
    if (!/^[\x20-\x7e\xa9]{4}$/.test(type)) throw failed("the bytes are no MP4");
    const leftBytes = size === 0 ? Number.POSITIVE_INFINITY : size - head.headBytes;
    if (leftBytes < 0 || (kept.has(type) && leftBytes > videoSanity.indexBytes)) {
      throw failed("the video's index is damaged");
    }
    this.#isFirst = false;
    this.#head = Buffer.alloc(0);
    this.#box = { type, leftBytes, parts: [] };
    if (leftBytes === 0) this.#close(this.#box);
    return wanted;
  }

  /** Lets bytes of a box pass; answers how many. */
  #pass(box: PassingBox, bytes: Buffer): number {
    const passing = bytes.subarray(0, Math.min(bytes.length, box.leftBytes));
    box.leftBytes -= passing.length;
    if (box.type === "mdat") this.#mediaBytes += passing.length;
    // The sender may use its memory again.
    else if (kept.has(box.type)) box.parts.push(Buffer.from(passing));
    if (box.leftBytes === 0) this.#close(box);
    return passing.length;
  }

  #close(box: PassingBox): void {
    this.#box = undefined;
    if (box.type === "moov") this.#index = readMp4Index(Buffer.concat(box.parts));
    if (box.type !== "moof") return;
    if (!this.#index) throw failed("the video's index is damaged");
    this.#fragmentUnits += fragmentDuration(Buffer.concat(box.parts), this.#index);
  }
}
