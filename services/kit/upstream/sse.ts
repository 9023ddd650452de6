// Cuts an upstream's stream into server-sent events, with as few copies as it can.

import { UpstreamError } from "./errors.ts";

/** One received server-sent event. Its data are a range of bytes, of which no view is made until one is needed. */
export interface SseEvent {
  /** Its `event:` field, "" for none. */
  name: string;
  /** Bytes that hold its data, from `start` to `end`. Several `data:` lines are joined by a line feed. */
  bytes: Buffer;
  start: number;
  end: number;
  /**
   * The event's own bytes. Set only where they are exactly `event: NAME` (or no such line), one `data: …` line and an empty line, all
   * ended by line feeds. Such a slice can be passed on unchanged.
   */
  frame: Buffer | undefined;
}

/** The event's data, as a view. */
export function dataOf({ bytes, start, end }: SseEvent): Buffer {
  return bytes.subarray(start, end);
}

/** An event with these data, and with no other frame than this. */
export function eventOf(name: string, bytes: Buffer, frame?: Buffer): SseEvent {
  return { name, bytes, start: 0, end: bytes.length, frame };
}

/** Cuts a byte stream into events, with any chunk borders (WHATWG HTML, 9.2.6). */
export interface SseParser {
  /** The events that `chunk` completes. They are views of the chunk where it holds them whole, so do not write to it. */
  push(chunk: Buffer): readonly SseEvent[];
  /** The event that the stream's end left without its empty line, where it has data. */
  end(): SseEvent | undefined;
}

const LF = 10;
const CR = 13;
const COLON = 58;
const SPACE = 32;
const maxAscii = 0x7f;
/** Characters of a name that is kept to be compared. Names of protocols are shorter, and a stream need not keep a longer one. */
const maxLastName = 64;

/** Makes a parser. An event over `maxEventBytes` is an {@link UpstreamError} `too_large`. */
export function createSseParser({ maxEventBytes }: { maxEventBytes: number }): SseParser {
  return new Parser(maxEventBytes);
}

const noEvents: readonly SseEvent[] = [];

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
  /** The last name that came. Most names come again, and then no text is made of them. */
  #lastName = "";
  /** Where its data begin and end: its first `data:` line. -1: none has come. */
  #dataStart = -1;
  #dataEnd = -1;
  /** Further lines of data. Only an event that is not plain has them. */
  #moreData: { start: number; end: number }[] | undefined;
  #isPlain = true;

  constructor(maxEventBytes: number) {
    this.#maxEventBytes = maxEventBytes;
  }

  push(chunk: Buffer): readonly SseEvent[] {
    const bytes = this.#used === 0 ? chunk : this.#append(chunk);
    let events: SseEvent[] | undefined;
    let eventStart = 0;
    let nextCr = -1;
    for (;;) {
      const lf = bytes.indexOf(LF, this.#searched);
      // Searched once for a chunk. A chunk without any is not searched again for every line.
      if (nextCr < this.#searched) {
        nextCr = bytes.indexOf(CR, this.#searched);
        if (nextCr === -1) nextCr = Number.POSITIVE_INFINITY;
      }
      const end = Math.min(lf === -1 ? bytes.length : lf, nextCr);
      // A carriage return at the very end may be half of a pair.
      if (end >= bytes.length - (end === nextCr ? 1 : 0)) {
        this.#searched = end;
        break;
      }
      const next = end === nextCr && bytes[end + 1] === LF ? end + 2 : end + 1;
      if (end === nextCr) this.#isPlain = false;
      if (end > this.#lineStart) this.#line(bytes, this.#lineStart, end);
      else {
        const event = this.#finish(bytes, eventStart, next);
        // A list that is made with its first event takes no room for others. Most chunks hold one.
        if (event && events) events.push(event);
        else if (event) events = [event];
        eventStart = next;
      }
      this.#lineStart = next;
      this.#searched = next;
    }
    if (eventStart < bytes.length) this.#keep(bytes, eventStart, events !== undefined);
    else {
      this.#used = 0;
      this.#lineStart = 0;
      this.#searched = 0;
    }
    return events ?? noEvents;
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

  /** The held bytes with `chunk` behind them. */
  #append(chunk: Buffer): Buffer {
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
    if (this.#dataStart === -1) return;
    this.#dataStart -= eventStart;
    this.#dataEnd -= eventStart;
    for (const line of this.#moreData ?? []) {
      line.start -= eventStart;
      line.end -= eventStart;
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
    const isData = bytes[start] === "data".charCodeAt(0);
    const colon = start + (isData ? 4 : 5);
    const isField = colon >= end ? colon === end : bytes[colon] === COLON;
    if (!isField || !holds(bytes, start, colon, isData ? "data" : "event")) {
      this.#isPlain = false;
      return;
    }
    const hasSpace = colon + 1 < end && bytes[colon + 1] === SPACE;
    const value = Math.min(end, colon + (hasSpace ? 2 : 1));
    const isRepeated = this.#dataStart !== -1 || (!isData && this.#name !== "");
    if (!hasSpace || isRepeated || (!isData && value === end)) this.#isPlain = false;
    if (!isData) {
      const isLast = holds(bytes, value, end, this.#lastName);
      this.#name = isLast ? this.#lastName : bytes.toString("utf8", value, end);
      if (this.#name.length <= maxLastName) this.#lastName = this.#name;
    } else if (this.#dataStart === -1) {
      this.#dataStart = value;
      this.#dataEnd = end;
    } else {
      this.#moreData ??= [];
      this.#moreData.push({ start: value, end });
    }
  }

  /** The event that ends at `end`, or undefined where it has no data. Begins the next one. */
  #finish(bytes: Buffer, eventStart: number, eventEnd: number): SseEvent | undefined {
    const name = this.#name;
    const start = this.#dataStart;
    const more = this.#moreData;
    const isPlain = this.#isPlain;
    this.#name = "";
    this.#dataStart = -1;
    this.#moreData = undefined;
    this.#isPlain = true;
    if (start === -1) return undefined;
    const event: SseEvent = { name, bytes, start, end: this.#dataEnd, frame: undefined };
    if (more) return eventOf(name, joined(bytes, [event, ...more]));
    const isAll = eventStart === 0 && eventEnd === bytes.length;
    if (isPlain) event.frame = isAll ? bytes : bytes.subarray(eventStart, eventEnd);
    return event;
  }
}

/** Are these bytes this text? Only ASCII is compared: other text is not found. */
function holds(bytes: Buffer, start: number, end: number, text: string): boolean {
  if (end - start !== text.length) return false;
  for (let i = 0; i < text.length; i++) {
    const byte = bytes[start + i] as number;
    if (byte > maxAscii || byte !== text.charCodeAt(i)) return false;
  }
  return true;
}

function joined(bytes: Buffer, lines: readonly { start: number; end: number }[]): Buffer {
  const lineFeed = Buffer.from("\n");
  return Buffer.concat(
    lines.flatMap(({ start, end }, i) =>
      i === 0 ? [bytes.subarray(start, end)] : [lineFeed, bytes.subarray(start, end)],
    ),
  );
}
