import type { Clock } from "#kit/time/clock.ts";
import type { FairShare } from "./fair-share.ts";

/** One that holds a place of a fair share, or several, and may stand still. */
export interface Holder {
  accountId: string;
  /** For how long it has stood still, in ms; 0: it moves. */
  stillMs(): number;
  /** Has it end, and so give back its place. Called at most once. */
  end(): void;
}

/** Has those that stand still give way while others wait for their places. */
export interface GiveWay {
  /** Counts a holder until this is disposed of, which is to be when its place is given back. */
  holds(holder: Holder): Disposable;
  /** To be called where an account may have to wait: looks at the holders until none does. */
  look(): void;
}

interface GiveWayOptions {
  /** What the places are of. */
  share: Pick<FairShare, "lacking">;
  clock: Clock;
  /** Who has stood still for this long, in ms, gives way. */
  afterMs: number;
  /** How often holders are looked at while an account waits, in ms. */
  lookMs: number;
}

/** Makes it, with no holder. */
export function createGiveWay({ share, clock, afterMs, lookMs }: GiveWayOptions): GiveWay {
  const holders = new Set<Holder>();
  /** Those that were told to end and have not given back their places yet. */
  const ending = new Set<Holder>();
  let isLooking = false;

  /** Ends one for each account that waits, of other accounts, the one that has stood still for longest first. */
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
