// Ends work that holds a place and makes no progress, such as a reader that does not read, as soon as another account wants the
// place.

import type { Clock } from "#kit/time/clock.ts";
import type { FairShare } from "./fair-share.ts";

/** Holds one or more places of a fair share, and may stall. */
export interface Holder {
  accountId: string;
  /** For how long it has stalled, in ms. 0: it makes progress. */
  stillMs(): number;
  /** Ends it, so that it gives back its places. Called at most once. */
  end(): void;
}

/** Ends stalled holders while others wait for their places. */
export interface GiveWay {
  /** Counts a holder until this is disposed of. Dispose of it when the holder's place is given back. */
  holds(holder: Holder): Disposable;
  /** Call this where an account may have to wait. It checks the holders until no account waits. */
  look(): void;
}

interface GiveWayOptions {
  /** The share that the places belong to. */
  share: Pick<FairShare, "lacking">;
  clock: Clock;
  /** A holder that has stalled for this many ms is ended. */
  afterMs: number;
  /** Milliseconds between two checks of the holders, while an account waits. */
  lookMs: number;
}

/** Makes one with no holder. */
export function createGiveWay({ share, clock, afterMs, lookMs }: GiveWayOptions): GiveWay {
  const holders = new Set<Holder>();
  /** Holders that were ended and have not given back their places yet. */
  const ending = new Set<Holder>();
  let isLooking = false;

  /** Ends one holder for each account that waits, of other accounts. The one that has stalled for longest comes first. */
  const endStill = (waiting: string[]) => {
    const still = [...holders]
      .filter((holder) => !ending.has(holder))
      .map((holder) => ({ holder, stillMs: holder.stillMs() }))
      .filter(({ stillMs }) => stillMs >= afterMs)
      .toSorted((a, b) => b.stillMs - a.stillMs);
    for (const accountId of waiting.slice(ending.size)) {
      const at = still.findIndex(({ holder }) => holder.accountId !== accountId);
      const [due] = at < 0 ? [] : still.splice(at, 1);
      if (!due) continue;
      ending.add(due.holder);
      due.holder.end();
    }
  };
  const lookWhileNeeded = async () => {
    isLooking = true;
    for (let waiting = share.lacking(); waiting.length > 0; waiting = share.lacking()) {
      endStill(waiting);
      await clock.sleep(lookMs);
    }
    isLooking = false;
  };

  return {
    holds(holder) {
      holders.add(holder);
      return {
        [Symbol.dispose]() {
          holders.delete(holder);
          ending.delete(holder);
        },
      };
    },
    look() {
      if (!isLooking) void lookWhileNeeded();
    },
  };
}
