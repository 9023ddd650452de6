import type { FairShare, Places } from "./fair-share.ts";

/** Room in memory for one thing that grows as it comes, of what is shared between accounts. */
export interface MemoryRoom extends Disposable {
  /** How much it has. */
  readonly bytes: number;
  /**
   * Has it grow to so many bytes, waiting where it must; resolves at once where it is as large. What waits keeps what it has, so two can wait for
   * each other: the share's longest wait ends that. Rejects as a fair share does.
   */
  reach(bytes: number): Promise<void>;
  /** Gives back what is more than so many bytes. */
  shrink(bytes: number): void;
}

/** Makes room without a byte yet. Once it is disposed of, what waits for it rejects with `ended`. */
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
      // Given in the moment in which it ended: nothing else would give it back.
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
