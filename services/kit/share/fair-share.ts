import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";

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
  return new AccountQueues(initial, options);
}

/** The accounts that hold or want places, and their requests that wait. */
class AccountQueues implements FairShare {
  #bounds: FairShareBounds;
  readonly #clock: Clock;
  readonly #isPaying: (accountId: string) => boolean;
  readonly #full: () => Error;
  readonly #late: () => Error;
  #held = 0;
  #isTiming = false;
  readonly #accounts = new Map<string, Account>();
  /** Accounts that have a request waiting, the one whose turn is next first. */
  readonly #queue = new Set<Account>();
  /** All that wait, in the order of asking, which is that of their deadlines. */
  readonly #waiting = new Set<Waiter>();

  constructor(bounds: FairShareBounds, options: FairShareOptions) {
    this.#bounds = bounds;
    this.#clock = options.clock ?? systemClock;
    this.#isPaying = options.isPaying ?? (() => true);
    this.#full = options.full ?? tooManyAtOnce;
    this.#late = options.late ?? noPlaceInTime;
  }

  takeFree(accountId: string, wanted = 1): Places | undefined {
    const account = this.#accountOf(accountId);
    const share = this.#shareOf(accountId);
    const size = this.#sizeFor(wanted, share);
    const isFree = this.#held + size <= this.#bounds.places && account.held + size <= share.places;
    if (isFree && account.waiting.size === 0 && !this.#hasOneWaiting()) {
      return this.#giveTurn(account, size);
    }
    this.#forget(account);
    return undefined;
  }

  take(accountId: string, signal: AbortSignal, wanted = 1): Promise<Places> {
    if (signal.aborted) return Promise.reject(signal.reason);
    const turn = this.takeFree(accountId, wanted);
    if (turn) return Promise.resolve(turn);
    const account = this.#accountOf(accountId);
    if (account.waiting.size >= this.#shareOf(accountId).waiting) {
      this.#forget(account);
      return Promise.reject(this.#full());
    }
    return this.#wait(account, signal, wanted);
  }

  rebound(next: FairShareBounds): void {
    this.#bounds = next;
    this.#advance();
  }

  lacking(): string[] {
    return [...this.#queue].filter((account) => this.#lacksPlace(account)).map(({ id }) => id);
  }

  #wait(account: Account, signal: AbortSignal, size: number): Promise<Places> {
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#remove(waiter);
        reject(signal.reason);
        this.#advance();
      };
      const waiter: Waiter = {
        account,
        size,
        untilMs: this.#clock.steady() + this.#bounds.waitMs,
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
      this.#queue.add(account);
      this.#waiting.add(waiter);
      void this.#watchTime();
    });
  }

  #shareOf(id: string): AccountShare {
    const { each, eachUnpaid = each } = this.#bounds;
    return this.#isPaying(id) ? each : eachUnpaid;
  }

  #sizeFor(wanted: number, share: AccountShare): number {
    return Math.max(1, Math.min(wanted, share.places, this.#bounds.places));
  }

  #accountOf(id: string): Account {
    const known = this.#accounts.get(id);
    if (known) return known;
    const account: Account = { id, held: 0, waiting: new Set() };
    this.#accounts.set(id, account);
    return account;
  }

  #forget(account: Account): void {
    if (account.waiting.size > 0) return;
    this.#queue.delete(account);
    if (account.held === 0) this.#accounts.delete(account.id);
  }

  #remove(waiter: Waiter): void {
    this.#waiting.delete(waiter);
    waiter.account.waiting.delete(waiter);
    this.#forget(waiter.account);
  }

  #giveTurn(account: Account, size: number): Places {
    account.held += size;
    this.#held += size;
    let own = size;
    const shrink = (to: number) => {
      if (to >= own) return;
      account.held -= own - to;
      this.#held -= own - to;
      own = to;
      this.#forget(account);
      this.#advance();
    };
    return { shrink, [Symbol.dispose]: () => shrink(0) };
  }

  /** Lets in all that fit, one of each account in turn. */
  #advance(): void {
    // An account that was served goes to the end of the set, and so comes again in this same loop.
    for (const account of this.#queue) {
      const [first] = account.waiting;
      if (!first) continue;
      const share = this.#shareOf(account.id);
      const size = this.#sizeFor(first.size, share);
      // Its own bound holds up that account alone.
      if (account.held + size > share.places) continue;
      // What needs more room than there is keeps its turn, or smaller ones would pass it for ever.
      if (this.#held + size > this.#bounds.places) return;
      const turn = this.#giveTurn(account, size);
      this.#remove(first);
      if (this.#queue.delete(account)) this.#queue.add(account);
      first.enter(turn);
    }
  }

  /** One timer for all: the first to ask is the first whose time is over. */
  async #watchTime(): Promise<void> {
    if (this.#isTiming) return;
    this.#isTiming = true;
    const clock = this.#clock;
    for (;;) {
      const [first] = this.#waiting;
      if (!first) break;
      if (first.untilMs > clock.steady()) await clock.sleep(first.untilMs - clock.steady());
      else {
        this.#remove(first);
        first.leave(this.#late());
        // It may have been the large one for which the others made room.
        this.#advance();
      }
    }
    this.#isTiming = false;
  }

  /** Does a large request wait for room that a small one would take from it? */
  #hasOneWaiting(): boolean {
    for (const account of this.#queue) if (this.#lacksPlace(account)) return true;
    return false;
  }

  #lacksPlace({ id, held: own, waiting: requests }: Account): boolean {
    const [first] = requests;
    const share = this.#shareOf(id);
    return first !== undefined && own + this.#sizeFor(first.size, share) <= share.places;
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
