import { type Clock, systemClock } from "./clock.ts";
import { ErrorReason, RefusalError } from "./errors.ts";

/** What one account may have. */
export interface AccountShare {
  /** Places at once. Fewer than there are in all, so that what one account does leaves places to the others. */
  places: number;
  /** Requests that wait for a place; the next is refused at once. */
  waiting: number;
}

/** Bounds of a {@link FairShare}. A place is whatever its owner counts: a request, an image, a byte. */
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

/** Shares something scarce between accounts: each has a bounded queue of its own, and the queues take turns. */
export interface FairShare {
  /**
   * Waits for a place, or for `size` of them (no more than the account may have). Rejects with `full` where the account
   * has too many waiting, with `late` after the waiting time, and with the signal's reason.
   */
  take(accountId: string, signal: AbortSignal, size?: number): Promise<Turn>;
  /** Puts other bounds in force; turns that are held stay held. */
  rebound(bounds: FairShareBounds): void;
}

/** What a {@link FairShare} works with. */
export interface FairShareOptions {
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
  enter(turn: Turn): void;
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
export function noPlaceInTime(): RefusalError {
  return new RefusalError(ErrorReason.SERVICE_UNAVAILABLE, {
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
  /** Accounts that have somebody waiting, the one whose turn is next first. */
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

  const giveTurn = (account: Account, size: number): Turn => {
    account.held += size;
    held += size;
    let isOver = false;
    return {
      [Symbol.dispose]() {
        if (isOver) return;
        isOver = true;
        account.held -= size;
        held -= size;
        forget(account);
        advance();
      },
    };
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
      if (first.untilMs > clock.now()) await clock.sleep(first.untilMs - clock.now());
      else {
        remove(first);
        first.leave(late());
        // It may have been the large one for which the others made room.
        advance();
      }
    }
    isTiming = false;
  };

  return {
    take(accountId, signal, wanted = 1) {
      if (signal.aborted) return Promise.reject(signal.reason);
      const account = accountOf(accountId);
      const share = shareOf(accountId);
      const size = sizeFor(wanted, share);
      const isFree = held + size <= bounds.places && account.held + size <= share.places;
      if (isFree && account.waiting.size === 0 && !isSomebodyNext()) {
        return Promise.resolve(giveTurn(account, size));
      }
      if (account.waiting.size >= share.waiting) {
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
          untilMs: clock.now() + bounds.waitMs,
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
  };

  /** Does a large request wait for room that a small one would take from it? */
  function isSomebodyNext(): boolean {
    for (const { id, held: own, waiting: requests } of queue) {
      const [first] = requests;
      const share = shareOf(id);
      if (first && own + sizeFor(first.size, share) <= share.places) return true;
    }
    return false;
  }
}
