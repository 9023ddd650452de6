// Lets several callers read one stream, each from its beginning and at its own pace. Once too much is kept, the slowest reader
// sets the pace, so that memory stays bounded.

import { type Flow, type Pushed, pushed, pushTo, type Sink } from "#kit/stream/push-stream.ts";
import { maxReplayBytes, replayPieceBytes } from "../base/limits.ts";
import type { ReplayBytes } from "./replay-room.ts";

/** One stream that several callers read, each from its beginning. */
export interface SharedEvents {
  /** A new reader at the first byte. Undefined once the beginning is no longer kept. */
  read(): EventReader | undefined;
  /** Reads on from here without a caller, so that the stream goes on until this is closed. */
  readOn(): Pick<EventReader, "close">;
}

/** One caller's place in the stream. */
export interface EventReader {
  events: Pushed<Uint8Array>;
  /** Ends its reading. From now on it holds no other reader back. */
  close(): void;
}

interface Place {
  /** Number of the next piece, counted from the beginning. */
  at: number;
  /** Undefined before its caller reads, and after it has got the end. */
  sink: Sink<Uint8Array> | undefined;
  takesMore: boolean;
  /** Bytes that it may still get in this turn of the event loop. */
  leftBytes: number;
}

const noCaller: Sink<Uint8Array> = { push: () => true, end() {}, fail() {} };

/**
 * Shares the stream of `source`, which is read at the pace of the fastest reader. Up to `maxBytes` are kept for callers that come late,
 * or as many as `room` has. Beyond that no new reader can join, pieces that all have read are dropped, and the fastest reader waits for
 * the slowest. So memory is bounded, also where readers stand still.
 */
export function shareEvents(
  source: AsyncIterable<Uint8Array>,
  { room, maxBytes = maxReplayBytes }: { room?: ReplayBytes; maxBytes?: number } = {},
): SharedEvents {
  return new Shared(source, room, maxBytes);
}

class Shared implements SharedEvents, Sink<Uint8Array> {
  readonly #room: ReplayBytes | undefined;
  readonly #maxBytes: number;
  readonly #flow: Flow;
  readonly #places = new Set<Place>();
  #pieces: Uint8Array[] = [];
  #dropped = 0;
  #bytes = 0;
  /** How the stream ended. */
  #over: { error?: unknown } | undefined;
  #isFull = false;
  /** Bytes that are kept for the slowest reader once the stream is full. */
  #mostBytes: number;

  constructor(source: AsyncIterable<Uint8Array>, room: ReplayBytes | undefined, maxBytes: number) {
    this.#room = room;
    this.#maxBytes = maxBytes;
    this.#mostBytes = maxBytes;
    this.#flow = pushTo(source, this);
  }

  push(piece: Uint8Array): boolean {
    this.#pieces.push(piece);
    this.#bytes += piece.length;
    const hasRoom = this.#room?.keep(piece.length) !== false && this.#bytes <= this.#maxBytes;
    if (!hasRoom && !this.#isFull) {
      this.#isFull = true;
      this.#mostBytes = Math.min(this.#bytes, this.#maxBytes);
    }
    this.#giveAll();
    return this.#isAsked();
  }

  end(): void {
    this.#over = {};
    this.#giveAll();
  }

  fail(error: unknown): void {
    this.#over = { error };
    this.#giveAll();
  }

  read(): EventReader | undefined {
    if (this.#isFull) return undefined;
    const place: Place = {
      at: 0,
      sink: undefined,
      takesMore: false,
      leftBytes: replayPieceBytes,
    };
    this.#places.add(place);
    const close = () => this.#close(place);
    const events = pushed<Uint8Array>((sink) => {
      place.sink = sink;
      return {
        resume: () => {
          if (place.takesMore || !place.sink) return;
          place.takesMore = true;
          this.#give(place);
          this.#moved();
        },
        leave() {
          place.sink = undefined;
          close();
          return undefined;
        },
      };
    });
    return { events, close };
  }

  readOn(): Pick<EventReader, "close"> {
    const place: Place = {
      at: this.#dropped + this.#pieces.length,
      sink: noCaller,
      takesMore: true,
      leftBytes: Number.POSITIVE_INFINITY,
    };
    this.#places.add(place);
    this.#moved();
    return { close: () => this.#close(place) };
  }

  #close(place: Place): void {
    if (!this.#places.delete(place)) return;
    const { sink } = place;
    Object.assign(place, { sink: undefined, takesMore: false });
    this.#moved();
    sink?.end();
  }

  #giveAll(): void {
    for (const place of [...this.#places]) this.#give(place);
    this.#trim();
  }

  /** Gives a reader the pieces that it has not had, as far as it takes them. */
  #give(place: Place): void {
    while (place.takesMore && place.leftBytes > 0) {
      const piece = this.#pieces[place.at - this.#dropped];
      if (!piece) break;
      place.at++;
      place.leftBytes -= piece.length;
      // A reader that is far behind lets others have their turn.
      if (place.leftBytes <= 0) setImmediate(() => this.#refill(place));
      place.takesMore = place.sink?.push(piece) === true;
    }
    const over = this.#over;
    if (!place.takesMore || !over || place.at - this.#dropped < this.#pieces.length) return;
    const { sink } = place;
    Object.assign(place, { sink: undefined, takesMore: false });
    if ("error" in over) sink?.fail(over.error);
    else sink?.end();
  }

  #refill(place: Place): void {
    place.leftBytes = replayPieceBytes;
    this.#give(place);
    this.#moved();
  }

  /** Called when a reader has moved on, or left. */
  #moved(): void {
    this.#trim();
    if (!this.#over && this.#isAsked()) this.#flow.resume();
  }

  /** Does a reader take more than there is, and is there room for it? */
  #isAsked(): boolean {
    const isAtBound = this.#isFull && this.#bytes >= this.#mostBytes && this.#pieces.length > 0;
    if (isAtBound && this.#places.size > 1) return false;
    for (const place of this.#places) if (place.takesMore && place.leftBytes > 0) return true;
    return false;
  }

  /** Drops the pieces that every reader has had, once the stream is full. */
  #trim(): void {
    if (!this.#isFull) return;
    const slowest = Math.min(...[...this.#places].map((place) => place.at));
    const count = Math.min(slowest - this.#dropped, this.#pieces.length);
    const before = this.#bytes;
    for (const piece of this.#pieces.slice(0, count)) this.#bytes -= piece.length;
    this.#room?.drop(before - this.#bytes);
    this.#pieces = this.#pieces.slice(count);
    this.#dropped += count;
  }
}
