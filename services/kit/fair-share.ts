import { type Clock, systemClock } from "./clock.ts";
import { ErrorReason, RefusalError } from "./errors.ts";

/** What one account may have. */
interface AccountShare {
  /** Places at once. Fewer than there are in all, so that what one account does leaves places to the others. */
  places: number;
  /** Requests that wait for a place; the next is refused at once. */
  waiting: number;
}

/** Bounds of a {@link FairShare}. A place is what its owner counts: a request, an image, a byte. */
export interface FairShareBounds {
  /** Places in all. */
  places: number;
  /** Of an account that pays. */
  each: AccountShare;
  /** Of an account that is not known to pay; default: as one that does. */
  eachUnpaid?: AccountShare;
  /** A request waits no longer than this, in ms. */
  waitMs: number;
}

/** A place that is held until this is disposed of; disposing again does nothing. */
export type Turn = Disposable;

/** Several places. */
export interface Places extends Turn {
  /** Gives back what is more than `size` places. */
  shrink(size: number): void;
}

/** Shares something scarce between accounts: each has a bounded queue of its own, and the queues take turns. */
export interface FairShare {
  /**
   * Waits for a place, or for `size` of them (no more than the account may have). Rejects with `full` where the account
   * has too many waiting, with `late` after the waiting time, and with the signal's reason.
   */
  take(accountId: string, signal: AbortSignal, size?: number): Promise<Places>;
  /** The same where that need not wait; undefined where it must. */
  takeFree(accountId: string, size?: number): Places | undefined;
  /** Puts other bounds in force; turns that are held stay held. */
  rebound(bounds: FairShareBounds): void;
  /** Accounts with a request that lacks nothing but a free place, the one whose turn is next first. */
  lacking(): string[];
}

/** What a {@link FairShare} works with. */
interface FairShareOptions {
  /** Is the account known to pay? Default: every one is. */
  isPaying?: ((accountId: string) => boolean) | undefined;
  /** Error of a request for which its account's queue has no room; default: {@link tooManyAtOnce}. */
  full?: () => Error;
  /** Error of a request that waited too long; default: {@link noPlaceInTime}. */
  late?: () => Error;
  clock?: Clock;
}

interface Waiter {
  account: Account;
  size: number;
  untilMs: number;
  enter(turn: Places): void;
  leave(error: unknown): void;
}

interface Account {
  id: string;
  held: number;
  /** In the order of asking. */
  waiting: Set<Waiter>;
}

/** Hint of when to come back, in ms: turns are short. */
const retryMs = 1_000;

/** 429: the account itself is what fills its share. */
export function tooManyAtOnce(): RefusalError {
  return new RefusalError(ErrorReason.RATE_LIMIT_EXCEEDED, {
    message: "Too many requests of this account are under way at once.",
    metadata: { retry_after_ms: String(retryMs) },
  });
}

/** 503: all places stayed taken. */
export function noPlaceInTime(cause?: unknown): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
    cause,
    metadata: { retry_after_ms: String(retryMs) },
  });
}

/** Makes a {@link FairShare}, all of it free. */
export function createFairShare(
  initial: FairShareBounds,
  options: FairShareOptions = {},
): FairShare {
  const { clock = systemClock, isPaying = () => true } = options;
  const { full = tooManyAtOnce, late = noPlaceInTime } = options;
  let bounds = initial;
  let held = 0;
  let isTiming = false;
  const accounts = new Map<string, Account>();
  /** Accounts that have a request waiting, the one whose turn is next first. */
  const queue = new Set<Account>();
  /** All that wait, in the order of asking, which is that of their deadlines. */
  const waiting = new Set<Waiter>();

  const shareOf = (id: string) => (isPaying(id) ? bounds.each : (bounds.eachUnpaid ?? bounds.each));
  const sizeFor = (wanted: number, share: AccountShare) =>
    Math.max(1, Math.min(wanted, share.places, bounds.places));

  const accountOf = (id: string): Account => {
    const known = accounts.get(id);
    if (known) return known;
    const account: Account = { id, held: 0, waiting: new Set() };
    accounts.set(id, account);
    return account;
  };
  const forget = (account: Account) => {
    if (account.waiting.size > 0) return;
    queue.delete(account);
    if (account.held === 0) accounts.delete(account.id);
  };
  const remove = (waiter: Waiter) => {
    waiting.delete(waiter);
    waiter.account.waiting.delete(waiter);
    forget(waiter.account);
  };

  const giveTurn = (account: Account, size: number): Places => {
    account.held += size;
    held += size;
    let own = size;
    const shrink = (to: number) => {
      if (to >= own) return;
      account.held -= own - to;
      held -= own - to;
      own = to;
      forget(account);
      advance();
    };
    return { shrink, [Symbol.dispose]: () => shrink(0) };
  };

  /** Lets in all that fit, one of each account in turn. */
  const advance = () => {
    // An account that was served goes to the end of the set, and so comes again in this same loop.
    for (const account of queue) {
      const [first] = account.waiting;
      if (!first) continue;
      const share = shareOf(account.id);
      const size = sizeFor(first.size, share);
      // Its own bound holds up that account alone.
      if (account.held + size > share.places) continue;
      // What needs more room than there is keeps its turn, or smaller ones would pass it for ever.
      if (held + size > bounds.places) return;
      const turn = giveTurn(account, size);
      remove(first);
      if (queue.delete(account)) queue.add(account);
      first.enter(turn);
    }
  };

  /** One timer for all: the first to ask is the first whose time is over. */
  const watchTime = async () => {
    if (isTiming) return;
    isTiming = true;
    for (;;) {
      const [first] = waiting;
      if (!first) break;
      if (first.untilMs > clock.steady()) await clock.sleep(first.untilMs - clock.steady());
      else {
        remove(first);
        first.leave(late());
        // It may have been the large one for which the others made room.
        advance();
      }
    }
    isTiming = false;
  };

  const takeFree = (accountId: string, wanted = 1): Places | undefined => {
    const account = accountOf(accountId);
    const share = shareOf(accountId);
    const size = sizeFor(wanted, share);
    const isFree = held + size <= bounds.places && account.held + size <= share.places;
    if (isFree && account.waiting.size === 0 && !isSomebodyNext()) return giveTurn(account, size);
    forget(account);
    return undefined;
  };

  return {
    takeFree,
    take(accountId, signal, wanted = 1) {
      if (signal.aborted) return Promise.reject(signal.reason);
      const turn = takeFree(accountId, wanted);
      if (turn) return Promise.resolve(turn);
      const account = accountOf(accountId);
      if (account.waiting.size >= shareOf(accountId).waiting) {
        forget(account);
        return Promise.reject(full());
      }
      return new Promise((resolve, reject) => {
        const onAbort = () => {
          remove(waiter);
          reject(signal.reason);
          advance();
        };
        const waiter: Waiter = {
          account,
          size: wanted,
          untilMs: clock.steady() + bounds.waitMs,
          enter(turn) {
            signal.removeEventListener("abort", onAbort);
            resolve(turn);
          },
          leave(error) {
            signal.removeEventListener("abort", onAbort);
            reject(error);
          },
        };
        signal.addEventListener("abort", onAbort, { once: true });
        account.waiting.add(waiter);
        queue.add(account);
        waiting.add(waiter);
        void watchTime();
      });
    },
    rebound(next) {
      bounds = next;
      advance();
    },
    lacking: () => [...queue].filter(lacksPlace).map(({ id }) => id),
  };

  /** Does a large request wait for room that a small one would take from it? */
  function isSomebodyNext(): boolean {
    for (const account of queue) if (lacksPlace(account)) return true;
    return false;
  }

  function lacksPlace({ id, held: own, waiting: requests }: Account): boolean {
    const [first] = requests;
    const share = shareOf(id);
    return first !== undefined && own + sizeFor(first.size, share) <= share.places;
  }
}

/**
 * Part of the places that one account leaves to the others, at least one place where there are two: what generates keeps its place
 * to its end, and all of it may be of one account.
 */
const leftToOthers = 0.25;

/** Of so many places, those that one account may have: at least one. */
function placesOfOne(places: number): number {
  return Math.max(1, places - Math.ceil(places * leftToOthers));
}

/**
 * An account that alone has used some places for this long, in ms, may have all of them: where one team is all that there is,
 * nothing is kept free for others. The first to come waits until one is given back, and from then on finds some left.
 */
const aloneMs = 15 * 60_000;

/** Notes which accounts use some places, and so how many of them one account may have. Times are of the monotonic clock, in ms. */
export class PlaceUse {
  #lastAccountId: string | undefined;
  /** When an account used them that was not the one before it. */
  #otherAtMs = Number.NEGATIVE_INFINITY;

  /** The account asks for a place, or takes one. */
  note(accountId: string, nowMs: number): void {
    const isOther = this.#lastAccountId !== undefined && this.#lastAccountId !== accountId;
    if (isOther) this.#otherAtMs = nowMs;
    this.#lastAccountId = accountId;
  }

  /** Of so many places, those that one account may have: at least one. */
  placesOfOne(places: number, nowMs: number): number {
    const isShared = nowMs - this.#otherAtMs < aloneMs;
    return isShared ? placesOfOne(places) : Math.max(1, places);
  }
}
