// Decides which account gets the next place where places are scarce, and how many one account may hold. Each owner of a scarce
// thing makes a share of its own: bodies, images, threads, slots of an upstream, bytes of memory.

import { untilAborted } from "#kit/base/abort.ts";
import { ErrorReason, RefusalError } from "#kit/base/errors.ts";
import type { StopSignal } from "#kit/base/stop.ts";
import { type Clock, systemClock } from "#kit/time/clock.ts";

/** The places of one account. */
interface AccountShare {
  /** Places at once. They are fewer than the total, so that one account leaves places to the others. */
  places: number;
  /** Requests that wait for a place. A further one is refused at once. */
  waiting: number;
}

/** Bounds of a {@link FairShare}. The owner decides what a place is: a request, an image, a byte. */
export interface FairShareBounds {
  /** Places in all. */
  places: number;
  /** The bounds of an account that pays. */
  each: AccountShare;
  /** The bounds of an account that is not known to pay. Default: those of one that pays. */
  eachUnpaid?: AccountShare;
  /** The longest that a request waits, in ms. */
  waitMs: number;
}

/** A place that is held until this is disposed of. Disposing of it again does nothing. */
export type Turn = Disposable;

/** Several places. */
export interface Places extends Turn {
  /** Gives back the places above `size`. */
  shrink(size: number): void;
}

/** Shares a scarce resource between accounts. Each account has a bounded queue, and the queues take turns. */
export interface FairShare {
  /**
   * Waits for a place, or for `size` of them (no more than the account may have). Rejects with `full` where the account
   * has too many waiting, with `late` after the waiting time, and with the signal's reason.
   */
  take(accountId: string, signal: StopSignal, size?: number): Promise<Places>;
  /** Takes places that are free at once. Undefined where the account would have to wait. */
  takeFree(accountId: string, size?: number): Places | undefined;
  /** Puts other bounds in force. Turns that are held stay held. */
  rebound(bounds: FairShareBounds): void;
  /** Accounts with a request that waits only for a free place, the one whose turn is next first. */
  lacking(): string[];
}

/** Options of a {@link FairShare}. */
interface FairShareOptions {
  /** Is the account known to pay? Default: every account is. */
  isPaying?: ((accountId: string) => boolean) | undefined;
  /** Error of a request for which its account's queue has no room. Default: {@link tooManyAtOnce}. */
  full?: () => Error;
  /** Error of a request that waited too long. Default: {@link noPlaceInTime}. */
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
  /** Requests in the order in which they came. */
  waiting: Set<Waiter>;
}

/** Hint for when to try again, in ms. Turns are short. */
const retryMs = 1_000;

/** 429: the account itself fills its share. */
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

/** Makes a {@link FairShare} with all places free. */
export function createFairShare(
  initial: FairShareBounds,
  options: FairShareOptions = {},
): FairShare {
  return new AccountQueues(initial, options);
}

/**
 * Waits for a turn, and then does the work in it. Rejects as `take`, as the work, and with the signal's reason. The turn ends with the
 * work, even where the caller has left before.
 */
export async function inTurn<T>(
  share: Pick<FairShare, "take">,
  { accountId, signal }: { accountId: string; signal: StopSignal },
  work: () => Promise<T>,
): Promise<T> {
  const turn = await share.take(accountId, signal);
  const done = work().finally(() => turn[Symbol.dispose]());
  return await untilAborted(done, signal);
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
  /** Accounts with a waiting request, the one whose turn is next first. */
  readonly #queue = new Set<Account>();
  /** All waiting requests, in the order in which they came, which is that of their deadlines. */
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
    const isAlone = this.#queue.size === 0;
    if (isFree && (isAlone || (account.waiting.size === 0 && !this.#hasOneWaiting()))) {
      return this.#giveTurn(account, size);
    }
    this.#forget(account);
    return undefined;
  }

  take(accountId: string, signal: StopSignal, wanted = 1): Promise<Places> {
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

  #wait(account: Account, signal: StopSignal, size: number): Promise<Places> {
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
      if (this.#queue.size > 0) this.#advance();
    };
    return { shrink, [Symbol.dispose]: () => shrink(0) };
  }

  /** Lets in all requests that fit, one of each account in turn. */
  #advance(): void {
    // An account that was served goes to the end of the set, so this same loop reaches it again.
    for (const account of this.#queue) {
      const [first] = account.waiting;
      if (!first) continue;
      const share = this.#shareOf(account.id);
      const size = this.#sizeFor(first.size, share);
      // A full account holds up only itself.
      if (account.held + size > share.places) continue;
      // A request that needs more places than are free keeps its turn. Otherwise smaller ones would pass it for ever.
      if (this.#held + size > this.#bounds.places) return;
      const turn = this.#giveTurn(account, size);
      this.#remove(first);
      if (this.#queue.delete(account)) this.#queue.add(account);
      first.enter(turn);
    }
  }

  /** One timer for all requests: the first that came is the first whose time is over. */
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
        // The request that left may have been the large one for which the others made room.
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
 * Part of the places that one account leaves to the others, at least one place where there are two. A generation keeps its place to its
 * end, and all of them may be of one account.
 */
const leftToOthers = 0.25;

/** The number of places, of the given total, that one account may have: at least one. */
function placesOfOne(places: number): number {
  return Math.max(1, places - Math.ceil(places * leftToOthers));
}

/**
 * An account that alone has used the places for this long, in ms, may have all of them. Where a single team uses the installation, no
 * place is kept free for others. The first other account waits until a place is given back, and from then on finds some free.
 */
const aloneMs = 15 * 60_000;

/** Notes which accounts use the places, and so how many of them one account may have. Times are of the monotonic clock, in ms. */
export class PlaceUse {
  #lastAccountId: string | undefined;
  /** When an account last used the places that was not the one before it. */
  #otherAtMs = Number.NEGATIVE_INFINITY;

  /** Notes that the account asks for a place, or takes one. */
  note(accountId: string, nowMs: number): void {
    const isOther = this.#lastAccountId !== undefined && this.#lastAccountId !== accountId;
    if (isOther) this.#otherAtMs = nowMs;
    this.#lastAccountId = accountId;
  }

  /** The number of places, of the given total, that one account may have: at least one. */
  placesOfOne(places: number, nowMs: number): number {
    const isShared = nowMs - this.#otherAtMs < aloneMs;
    return isShared ? placesOfOne(places) : Math.max(1, places);
  }
}
