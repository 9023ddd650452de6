// Shares the memory for whole answers among accounts, so that slow callers of large answers cannot fill it. `replay-room.ts` does
// this for streams.

import { unavailable } from "#kit/base/errors.ts";
import { type StopSignal, signalOf } from "#kit/base/stop.ts";
import { createFairShare } from "#kit/share/fair-share.ts";
import { createGiveWay } from "#kit/share/give-way.ts";
import { openRoom } from "#kit/share/memory-room.ts";
import type { Payers } from "#kit/share/payers.ts";
import type { Clock } from "#kit/time/clock.ts";
import { heldBackLookMs, heldBackMs } from "#kit/upstream/limits.ts";
import { answersInMemory } from "../base/limits.ts";

/** Room in memory for one whole answer. It is held from before most of the answer is read, until its caller has taken it or is gone. */
export interface AnswerRoom extends Disposable {
  /** Like `UpstreamRequest.reach`. */
  reach(bytes: number): Promise<void>;
  /** Gives back everything above this many bytes. */
  shrink(bytes: number): void;
  /**
   * The caller takes the answer from now on, piece by piece. A caller that takes nothing for 5 s while another account waits for room
   * is ended, with the reason given to `end`.
   */
  goes(end: (reason: Error) => void): void;
  /** Notes that a piece was taken. */
  moved(): void;
}

/** Shares the memory of a process between the whole answers of accounts. */
export interface AnswerRooms {
  /** Room without a byte yet. */
  open(accountId: string, signal: StopSignal): AnswerRoom;
}

/** Makes these rooms, with all memory free. */
export function createAnswerRooms({ clock, payers }: AnswerRoomsOptions): AnswerRooms {
  const share = createFairShare(answersInMemory, { clock, isPaying: payers?.isPaying });
  const giveWay = createGiveWay({
    ...{ share, clock },
    ...{ afterMs: heldBackMs, lookMs: heldBackLookMs },
  });
  return {
    open(accountId, signal) {
      const room = openRoom(share, { accountId, ended: "the answer has ended" }, signalOf(signal));
      let holder: Disposable | undefined;
      let movedAtMs = 0;
      return {
        async reach(bytes) {
          const reached = room.reach(bytes);
          giveWay.look();
          await reached;
        },
        shrink: room.shrink,
        goes(end) {
          if (room.bytes === 0) return;
          movedAtMs = clock.steady();
          const stillMs = () => clock.steady() - movedAtMs;
          holder = giveWay.holds({ accountId, stillMs, end: () => end(heldBack()) });
        },
        moved() {
          movedAtMs = clock.steady();
        },
        [Symbol.dispose]() {
          holder?.[Symbol.dispose]();
          room[Symbol.dispose]();
        },
      };
    },
  };
}

interface AnswerRoomsOptions {
  clock: Clock;
  payers?: Pick<Payers, "isPaying"> | undefined;
}

function heldBack(): Error {
  return unavailable(new Error("the caller took nothing of its answer"));
}
