// Holds a speech while it is spoken, so that callers hear it before it is stored.

import type { SoundFormat } from "#kit/sound/formats.ts";
import { maxListeners } from "./limits.ts";

/** Bytes that a listener gets at once. */
const pieceBytes = 64 * 1024;

/**
 * The audio of a speech while it is spoken. It is kept from its first byte until its request ends, in the room that the speech has in
 * memory. So listeners may join late. A slow one holds no other back, and finds the rest in the blob store.
 */
export class LiveSound {
  readonly format: SoundFormat;
  /** The price, USD micros. */
  readonly amount: bigint;
  #pieces: Uint8Array[] = [];
  #isOver = false;
  #listeners = 0;
  #news = Promise.withResolvers<void>();

  constructor({ format, amount }: { format: SoundFormat; amount: bigint }) {
    this.format = format;
    this.amount = amount;
  }

  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += pieceBytes) {
      this.#pieces.push(bytes.subarray(at, at + pieceBytes));
    }
    this.#tell();
  }

  /** All bytes of the audio are joined. They are the pieces from now on, so that none is in memory twice. */
  joined(bytes: Uint8Array): void {
    let end = 0;
    this.#pieces = this.#pieces.map(({ length }) => {
      const begin = end;
      end += length;
      return bytes.subarray(begin, end);
    });
  }

  /** Its request has ended, and the room is given back. */
  end(): void {
    this.#isOver = true;
    this.#pieces = [];
    this.#tell();
  }

  /**
   * The pieces from the first one on, as copies, because a slow reader must not keep the whole in memory. Ends with the request, also
   * where its reader is behind, and at once where {@link maxListeners} listen. Throws the signal's reason.
   */
  async *listen(signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
    if (this.#listeners >= maxListeners) return;
    this.#listeners++;
    const tell = () => this.#tell();
    signal.addEventListener("abort", tell, { once: true });
    try {
      for (let at = 0; ; at++) {
        while (at >= this.#pieces.length) {
          signal.throwIfAborted();
          if (this.#isOver) return;
          await this.#news.promise;
        }
        const piece = this.#pieces[at];
        if (piece) yield new Uint8Array(piece);
      }
    } finally {
      this.#listeners--;
      signal.removeEventListener("abort", tell);
    }
  }

  #tell(): void {
    this.#news.resolve();
    this.#news = Promise.withResolvers();
  }
}
