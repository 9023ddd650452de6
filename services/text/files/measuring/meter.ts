// Has callers' audio measured in threads, where a hostile file does the least harm. The length decides the price. `sound.ts` is
// the code in the thread.

import { createFairShare, inTurn } from "#kit/share/fair-share.ts";
import type { ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import { measuringShare, measuringTimeoutMs } from "../../base/limits.ts";
import type { inThread, MeasuredSound } from "./sound.ts";

/** Measures callers' audio in threads. A library reads each file, and a hostile file takes no more than its thread. */
export interface SoundMeter {
  /**
   * Undefined: the bytes are no audio. Refuses with SERVICE_UNAVAILABLE, or with RATE_LIMIT_EXCEEDED where too many files of the
   * account wait. Rejects with the signal's reason. The bytes go to the thread and come back in the answer, so that they are in memory
   * once.
   */
  measure(
    bytes: Uint8Array<ArrayBuffer>,
    asking: { accountId: string; signal: AbortSignal },
  ): Promise<MeasuredSound | undefined>;
}

const measuring: ThreadTask = {
  name: "measuring",
  lane: "long",
  module: new URL("./sound.ts", import.meta.url),
  answerTimeoutMs: measuringTimeoutMs,
};

/** A meter that measures in the workshop. */
export function createSoundMeter(workshop: Workshop): SoundMeter {
  const turns = createFairShare(measuringShare);
  return {
    measure: (bytes, asking) =>
      inTurn(turns, asking, () => workshop.run<typeof inThread>(measuring, bytes, [bytes.buffer])),
  };
}
