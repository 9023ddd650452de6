import { UpstreamError } from "./errors.ts";

/** One received server-sent event. */
export interface SseEvent {
  /** Its `event:` field, "" for none. */
  name: string;
  /** Its data. Several `data:` lines are joined by a line feed. */
  data: Buffer;
  /**
   * The event's own bytes. Set only where they are exactly `event: NAME` (or no such line), one `data: …` line and an empty line, all
   * ended by line feeds. Such a slice can be passed on unchanged.
   */
  frame: Buffer | undefined;
}

/** Cuts a byte stream into events, with any chunk borders (WHATWG HTML, 9.2.6). */
export interface SseParser {
  /** The events that `chunk` completes. They are views of the chunk where it holds them whole, so do not write to it. */
  push(chunk: Uint8Array): SseEvent[];
  /** The event that the stream's end left without its empty line, where it has data. */
  end(): SseEvent | undefined;
}

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;

/** Makes a parser. An event over `maxEventBytes` is an {@link UpstreamError} `too_large`. */
export function createSseParser({ maxEventBytes }: { maxEventBytes: number }): SseParser {
  return new Parser(maxEventBytes);
}

/** A range of the held bytes. */
type Range = [start: number, end: number];

class Parser implements SseParser {
  readonly #maxEventBytes: number;
  /** The unfinished event's bytes are the first `#used` of it. */
  #held: Buffer = Buffer.alloc(0);
  #used = 0;
  /** May `#held` be appended to in place? Not while an event that was handed out is a view of it. */
  #isOwned = false;
  /** Offsets of the unfinished event in the held bytes. */
  #lineStart = 0;
  #searched = 0;
  #isFirstLine = true;
  #name = "";
  #data: Range[] = [];
  #isPlain = true;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  push(chunk: Uint8Array): SseEvent[] {
    const bytes = this.#append(chunk);
    const events: SseEvent[] = [];
    let eventStart = 0;
    let nextCr = -1;
    for (;;) {
      const lf = bytes.indexOf(LF, this.#searched);
      // Searched once for a chunk. A chunk without any is not searched again for every line.
      if (nextCr < this.#searched) nextCr = indexOrEnd(bytes, CR, this.#searched);
      const end = Math.min(lf === -1 ? bytes.length : lf, nextCr);
      // A carriage return at the very end may be half of a pair.
      if (end >= bytes.length - (end === nextCr ? 1 : 0)) {
        this.#searched = end;
        break;
      }
      const next = end === nextCr && bytes[end + 1] === LF ? end + 2 : end + 1;
      if (end === nextCr) this.#isPlain = false;
      if (end === this.#lineStart) {
        const event = this.#finish(bytes, eventStart, next);
        if (event) events.push(event);
        eventStart = next;
      } else {
        this.#line(bytes, this.#lineStart, end);
      }
      this.#lineStart = next;
      this.#searched = next;
    }
    this.#keep(bytes, eventStart, events.length > 0);
    return events;
  }

  end(): SseEvent | undefined {
    const bytes = this.#held.subarray(0, this.#used);
    let end = bytes.length;
    if (bytes[end - 1] === CR) end--;
    if (end > this.#lineStart) this.#line(bytes, this.#lineStart, end);
    this.#isPlain = false;
    const event = this.#finish(bytes, 0, end);
    this.#keep(bytes, bytes.length, true);
    return event;
  }

  /** The held bytes with `chunk` behind them. The chunk itself where no bytes are held. */
  #append(chunk: Uint8Array): Buffer {
    if (this.#used === 0) return asBuffer(chunk);
    const length = this.#used + chunk.length;
    if (length > this.#maxEventBytes + chunk.length) throw new UpstreamError("too_large");
    if (!this.#isOwned || length > this.#held.length) {
      // Doubled, so that an event in many chunks is copied a constant number of times.
      const grown = Buffer.allocUnsafe(this.#isOwned ? length * 2 : length + chunk.length);
      this.#held.copy(grown, 0, 0, this.#used);
      this.#held = grown;
      this.#isOwned = true;
    }
    this.#held.set(chunk, this.#used);
    this.#used = length;
    return this.#held.subarray(0, length);
  }

  /** Keeps the bytes behind the last whole event, with its offsets counted from there. */
  #keep(bytes: Buffer, eventStart: number, gaveOut: boolean): void {
    if (eventStart === 0 && !gaveOut && this.#isOwned && this.#used === bytes.length) return;
    this.#held = bytes.subarray(eventStart);
    this.#used = this.#held.length;
    this.#isOwned = false;
    if (this.#used > this.#maxEventBytes) throw new UpstreamError("too_large");
    this.#lineStart -= eventStart;
    this.#searched -= eventStart;
    for (const range of this.#data) {
      range[0] -= eventStart;
      range[1] -= eventStart;
    }
  }

  #line(bytes: Buffer, from: number, end: number): void {
    let start = from;
    if (this.#isFirstLine) {
      this.#isFirstLine = false;
      if (bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf) {
        start += 3;
        this.#isPlain = false;
      }
    }
    const isData = startsWith(bytes, start, end, "data");
    const isName = !isData && startsWith(bytes, start, end, "event");
    if (!isData && !isName) {
      this.#isPlain = false;
      return;
    }
    const colon = start + (isData ? 4 : 5);
    const hasSpace = bytes[colon] === COLON && colon + 1 < end && bytes[colon + 1] === SPACE;
    const value = Math.min(end, colon + (hasSpace ? 2 : 1));
    const isRepeated = this.#data.length > 0 || (isName && this.#name !== "");
    if (!hasSpace || isRepeated || (isName && value === end)) this.#isPlain = false;
    if (isData) this.#data.push([value, end]);
    else this.#name = bytes.toString("utf8", value, end);
  }

  /** The event that ends at `end`, or undefined where it has no data. Begins the next one. */
  #finish(bytes: Buffer, start: number, end: number): SseEvent | undefined {
    const [first, ...rest] = this.#data;
    const event = first && {
      name: this.#name,
      data: rest.length === 0 ? bytes.subarray(...first) : joined(bytes, this.#data),
      frame: this.#isPlain ? bytes.subarray(start, end) : undefined,
    };
    this.#name = "";
    this.#data = [];
    this.#isPlain = true;
    return event;
  }
}

function indexOrEnd(bytes: Buffer, byte: number, from: number): number {
  const index = bytes.indexOf(byte, from);
  return index === -1 ? Number.POSITIVE_INFINITY : index;
}

/** Is the line's field name `name`? */
function startsWith(bytes: Buffer, start: number, end: number, name: string): boolean {
  const after = start + name.length;
  if (after > end || (after < end && bytes[after] !== COLON)) return false;
  for (let i = 0; i < name.length; i++) {
    if (bytes[start + i] !== name.charCodeAt(i)) return false;
  }
  return true;
}

function joined(bytes: Buffer, ranges: readonly Range[]): Buffer {
  const lineFeed = Buffer.from("\n");
  return Buffer.concat(
    ranges.flatMap((range, i) =>
      i === 0 ? [bytes.subarray(...range)] : [lineFeed, bytes.subarray(...range)],
    ),
  );
}

function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk)
    ? chunk
    : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
}
