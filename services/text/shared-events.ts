import { maxReplayBytes } from "./limits.ts";

/** One stream that several callers read, each from its beginning. */
export interface SharedEvents {
  /** A new reader at the first byte; undefined once the beginning is no longer kept. */
  read(): EventReader | undefined;
}

/** One caller's place in the stream. */
export interface EventReader {
  /** The next bytes; undefined after the last. */
  next(): Promise<Uint8Array | undefined>;
  /** Holds nobody back from now on. */
  close(): void;
}

interface Place {
  at: number;
}

/**
 * Shares what `pull` gives. It is pulled when the fastest reader wants more. Up to `maxBytes` are kept for callers that come
 * late; beyond that nobody new can join, what all have read is dropped, and the fastest waits for the slowest. So memory
 * is bounded whatever the readers do.
 */
export function shareEvents(
  pull: () => Promise<Uint8Array | undefined>,
  maxBytes = maxReplayBytes,
): SharedEvents {
  const places = new Set<Place>();
  let pieces: Uint8Array[] = [];
  let dropped = 0;
  let bytes = 0;
  let isEnded = false;
  let isFull = false;
  let pulling: Promise<void> | undefined;
  let moved = Promise.withResolvers<void>();

  const trim = () => {
    if (!isFull) return;
    const slowest = Math.min(...[...places].map((place) => place.at));
    const count = Math.min(slowest - dropped, pieces.length);
    for (const piece of pieces.slice(0, count)) bytes -= piece.length;
    pieces = pieces.slice(count);
    dropped += count;
    moved.resolve();
    moved = Promise.withResolvers<void>();
  };
  const more = async () => {
    while (isFull && bytes >= maxBytes && pieces.length > 0 && places.size > 1) await moved.promise;
    const piece = await pull();
    if (!piece) {
      isEnded = true;
      return;
    }
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxBytes) isFull = true;
  };

  return {
    read() {
      if (isFull) return undefined;
      const place: Place = { at: 0 };
      places.add(place);
      return {
        async next() {
          for (;;) {
            const piece = pieces[place.at - dropped];
            if (piece) {
              place.at++;
              trim();
              return piece;
            }
            if (isEnded) return undefined;
            pulling ??= more().finally(() => {
              pulling = undefined;
            });
            await pulling;
          }
        },
        close() {
          places.delete(place);
          trim();
        },
      };
    },
  };
}
