/**
 * Part of the places that one account leaves to the others, at least one place where there are two: requests that stand
 * still keep their places until they are cut off, and they may be all of one account.
 */
const leftToOthers = 0.25;
/**
 * An account that alone has used some places for this long, in ms, may have all of them: where one team is all that there
 * is, nothing is kept free for others.
 */
const aloneMs = 15 * 60_000;

/** Who uses some places, and so how many of them one account may have. Times are of the monotonic clock, in ms. */
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
    return Math.max(1, isShared ? places - Math.ceil(places * leftToOthers) : places);
  }
}
