import { type Pushed, pushed, pushTo, type Sink } from "#kit/stream/push-stream.ts";
import { maxReplayBytes, replayPieceBytes } from "../base/limits.ts";
import type { ReplayBytes } from "./replay-room.ts";

/** One stream that several callers read, each from its beginning. */
export interface SharedEvents {
  /** A new reader at the first byte; undefined once the beginning is no longer kept. */
  read(): EventReader | undefined;
}

/** One caller's place in the stream. */
export interface EventReader {
  events: Pushed<Uint8Array>;
  /** Ends its reading, and holds no other reader back from now on. */
  close(): void;
}

interface Place {
  /** Of the next piece, from the beginning. */
  at: number;
  /** Undefined before its caller reads, and when it has the end. */
  sink: Sink<Uint8Array> | undefined;
  takesMore: boolean;
  /** What it may still be given in this turn of the event loop. */
  leftBytes: number;
}

/**
 * Shares what `source` gives. It is read as the fastest reader takes more. Up to `maxBytes` are kept for callers that come
 * late, or as many as `room` has; beyond that no new reader can join, what all have read is dropped, and the fastest waits for the
 * slowest. So memory is bounded, also where readers stand still.
 */
export function shareEvents(
  source: AsyncIterable<Uint8Array>,
  { room, maxBytes = maxReplayBytes }: { room?: ReplayBytes; maxBytes?: number } = {},
): SharedEvents {
  const places = new Set<Place>();
  let pieces: Uint8Array[] = [];
  let dropped = 0;
  let bytes = 0;
  /** How it ended. */
  let over: { error?: unknown } | undefined;
  let isFull = false;
  /** Kept for the slowest once it is full. */
  let mostBytes = maxBytes;

  const trim = () => {
    if (!isFull) return;
    const slowest = Math.min(...[...places].map((place) => place.at));
    const count = Math.min(slowest - dropped, pieces.length);
    const before = bytes;
    for (const piece of pieces.slice(0, count)) bytes -= piece.length;
    room?.drop(before - bytes);
    pieces = pieces.slice(count);
    dropped += count;
  };
  /** Takes a reader more than there is, and is there room for it? */
  const isAsked = () => {
    if (isFull && bytes >= mostBytes && pieces.length > 0 && places.size > 1) return false;
    for (const place of places) if (place.takesMore && place.leftBytes > 0) return true;
    return false;
  };
  /** Gives a reader what it has not had and takes. */
  const give = (place: Place) => {
    while (place.takesMore && place.leftBytes > 0) {
      const piece = pieces[place.at - dropped];
      if (!piece) break;
      place.at++;
      place.leftBytes -= piece.length;
      // One that is far behind leaves others their turn.
      if (place.leftBytes <= 0) setImmediate(refill, place);
      place.takesMore = place.sink?.push(piece) === true;
    }
    if (!place.takesMore || !over || place.at - dropped < pieces.length) return;
    const { sink } = place;
    Object.assign(place, { sink: undefined, takesMore: false });
    if ("error" in over) sink?.fail(over.error);
    else sink?.end();
  };
  const giveAll = () => {
    for (const place of [...places]) give(place);
    trim();
  };
  const finish = (how: { error?: unknown }) => {
    over = how;
    giveAll();
  };
  const flow = pushTo(source, {
    push(piece) {
      pieces.push(piece);
      bytes += piece.length;
      const hasRoom = room?.keep(piece.length) !== false && bytes <= maxBytes;
      if (!hasRoom && !isFull) {
        isFull = true;
        mostBytes = Math.min(bytes, maxBytes);
      }
      giveAll();
      return isAsked();
    },
    end: () => finish({}),
    fail: (error) => finish({ error }),
  });
  /** A reader has moved on, or left. */
  const moved = () => {
    trim();
    if (!over && isAsked()) flow.resume();
  };
  const refill = (place: Place) => {
    place.leftBytes = replayPieceBytes;
    give(place);
    moved();
  };

  return {
    read() {
      if (isFull) return undefined;
      const place: Place = {
        at: 0,
        sink: undefined,
        takesMore: false,
        leftBytes: replayPieceBytes,
      };
      places.add(place);
      const close = () => {
        if (!places.delete(place)) return;
        const { sink } = place;
        Object.assign(place, { sink: undefined, takesMore: false });
        moved();
        sink?.end();
      };
      const events = pushed<Uint8Array>((sink) => {
        place.sink = sink;
        return {
          resume() {
            if (place.takesMore || !place.sink) return;
            place.takesMore = true;
            give(place);
            moved();
          },
          leave() {
            place.sink = undefined;
            close();
            return undefined;
          },
        };
      });
      return { events, close };
    },
  };
}
