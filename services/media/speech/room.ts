// Takes room in memory for a speech before its upstream is asked, so that speeches together do not fill the process.

import type { FairShare } from "#kit/share/fair-share.ts";
import { openRoom } from "#kit/share/memory-room.ts";
import { generateLimits } from "../../upstreams/media/limits.ts";
import { UnkeptSpeechError } from "../../upstreams/media/port.ts";
import { soundStepBytes } from "./limits.ts";

/** Room in memory for one speech, from before an upstream is asked for it until it is stored. */
export interface SoundRoom extends Disposable {
  /** Like `SpeechTask.reach`. */
  reach(bytes: number): Promise<void>;
  /** Gives back the room beyond this many bytes. */
  shrink(bytes: number): void;
}

/**
 * Takes room for the estimated most bytes of a speech. A larger speech takes more room as its bytes come, and waits for it as long as
 * the share says. So two speeches that wait for each other's room do not wait for ever. The room of the one that gives up goes to the
 * other.
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
