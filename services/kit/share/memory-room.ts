// Lets work whose size is not known ahead take memory from a fair share bit by bit, such as an answer that is still coming.

import type { FairShare, Places } from "./fair-share.ts";

/** Room in memory for one thing that grows as it comes. It is part of the memory that accounts share. */
export interface MemoryRoom extends Disposable {
  /** Bytes that it has now. */
  readonly bytes: number;
  /**
   * Grows the room to `bytes`, waiting where it must. Resolves at once where the room is as large already. A room that waits keeps its
   * bytes, so two can wait for each other. The longest wait of the share ends that. Rejects as a fair share does.
   */
  reach(bytes: number): Promise<void>;
  /** Gives back the bytes above `bytes`. */
  shrink(bytes: number): void;
}

/** Makes a room of 0 bytes. Once it is disposed of, calls that wait for it reject with `ended`. */
export function openRoom(
  memory: FairShare,
  { accountId, ended }: { accountId: string; ended: string },
  signal: AbortSignal,
): MemoryRoom {
  const taken: { bytes: number; places: Places }[] = [];
  let room = 0;
  const over = new AbortController();
  const either = AbortSignal.any([signal, over.signal]);
  const shrink = (bytes: number) => {
    for (let last = taken.at(-1); last && room > bytes; last = taken.at(-1)) {
      const kept = Math.max(0, last.bytes - (room - bytes));
      last.places.shrink(kept);
      room -= last.bytes - kept;
      last.bytes = kept;
      if (kept === 0) taken.pop();
    }
  };
  return {
    get bytes() {
      return room;
    },
    async reach(bytes) {
      const more = bytes - room;
      if (more <= 0) return;
      const places = await memory.take(accountId, either, more);
      // The places came in the moment in which the room ended. They are given back here, since no other code would.
      if (over.signal.aborted) places[Symbol.dispose]();
      over.signal.throwIfAborted();
      taken.push({ bytes: more, places });
      room += more;
    },
    shrink,
    [Symbol.dispose]() {
      over.abort(new Error(ended));
      shrink(0);
    },
  };
}
