import type { FairShare } from "#kit/share/fair-share.ts";
import { openRoom } from "#kit/share/memory-room.ts";
import { generateLimits } from "../../upstreams/media/limits.ts";
import { UnkeptSpeechError } from "../../upstreams/media/port.ts";
import { soundStepBytes } from "./limits.ts";

/** Room in memory for one sound, from before an upstream is asked for it until it is stored. */
export interface SoundRoom extends Disposable {
  /** As `SpeechTask.reach`. */
  reach(bytes: number): Promise<void>;
  /** Gives back what is more than so many bytes. */
  shrink(bytes: number): void;
}

/**
 * Takes room for the most bytes that a sound is reckoned to have. One that comes out larger takes more as it comes, and waits for it no
 * longer than the share says: two that wait for each other's room so end, and what the first one had is the other's.
 */
export async function takeRoom(
  memory: FairShare,
  { accountId, mostBytes }: { accountId: string; mostBytes: number },
  signal: AbortSignal,
): Promise<SoundRoom> {
  const room = openRoom(memory, { accountId, ended: "the speech has ended" }, signal);
  await room.reach(mostBytes);
  let isOver = false;
  return {
    shrink: room.shrink,
    async reach(bytes) {
      if (bytes <= room.bytes) return;
      const wanted = Math.max(bytes, room.bytes + soundStepBytes);
      try {
        await room.reach(Math.min(wanted, generateLimits.speechBytes));
      } catch (error) {
        signal.throwIfAborted();
        if (isOver) throw error;
        throw new UnkeptSpeechError(error);
      }
    },
    [Symbol.dispose]() {
      isOver = true;
      room[Symbol.dispose]();
    },
  };
}
