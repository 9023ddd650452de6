// Shares the places for files and repeated answers that are being sent among accounts, and ends a download whose caller takes
// nothing while others wait.

import type { FastifyReply, FastifyRequest } from "fastify";
import { turn } from "#kit/base/in-turns.ts";
import { createFairShare, type FairShareBounds } from "#kit/share/fair-share.ts";
import { createGiveWay } from "#kit/share/give-way.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Clock } from "#kit/time/clock.ts";
import { heldBackLookMs, heldBackMs } from "#kit/upstream/limits.ts";
import type { ReaderWatch } from "./readers.ts";
import { callerOf, endWithAnswer, leavingSignal } from "./request.ts";

/** Files, or bytes, that are sent to callers, shared between accounts. */
export interface Downloads {
  /**
   * Resolves when the answer may open its file, or write this many bytes. Its places are held until the answer is over. Refuses as a
   * fair share does.
   */
  take(request: FastifyRequest, reply: FastifyReply, places?: number): Promise<void>;
}

interface DownloadsOptions {
  bounds: FairShareBounds;
  clock: Clock;
  payers: Pick<Payers, "isPaying">;
  readers: Pick<ReaderWatch, "stillMs">;
}

/**
 * Makes the places, all free. While an account waits for one, a download of another account whose caller takes nothing is ended. Text
 * streams at a bounded upstream end the same way.
 */
export function createDownloads({ bounds, clock, payers, readers }: DownloadsOptions): Downloads {
  const share = createFairShare(bounds, { clock, isPaying: payers.isPaying });
  const giveWay = createGiveWay({
    ...{ share, clock },
    ...{ afterMs: heldBackMs, lookMs: heldBackLookMs },
  });
  let begun: Promise<void> = Promise.resolve();

  return {
    async take(request, reply, places = 1) {
      const { accountId } = callerOf(request).principal;
      const asked = share.take(accountId, leavingSignal(reply), places);
      giveWay.look();
      const place = await asked;
      endWithAnswer(reply, place);
      const { socket } = request.raw;
      const stillMs = () => readers.stillMs(socket);
      endWithAnswer(reply, giveWay.holds({ accountId, stillMs, end: () => socket.destroy() }));
      // Each in a separate turn of the event loop. Otherwise a thousand that come at once would be opened in one turn.
      begun = begun.then(() => turn());
      await begun;
    },
  };
}
