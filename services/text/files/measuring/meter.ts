import { createFairShare, inTurn } from "#kit/share/fair-share.ts";
import type { ThreadTask, Workshop } from "#kit/threads/workshop.ts";
import { measuringShare, measuringTimeoutMs } from "../../base/limits.ts";
import type { inThread, MeasuredSound } from "./sound.ts";

/** Measures callers' sounds in threads: a library reads each, and a hostile one takes no more than its thread. */
export interface SoundMeter {
  /**
   * Undefined: the bytes are no sound. Refuses with SERVICE_UNAVAILABLE, or with RATE_LIMIT_EXCEEDED where the account has too many
   * waiting; rejects with the signal's reason. The bytes are used up: they come back in the answer, so that they are held once.
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
