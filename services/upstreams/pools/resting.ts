// Decides when an upstream that fails rests, for how long, and when one request tries it again. `index.ts` keeps one state for
// each.

import type { Clock } from "#kit/time/clock.ts";
import { type Outcome, outcomes, type Rest } from "./outcomes.ts";

/** Failures in a row after which a lane rests. One or two are bad luck. */
const failuresInRow = 3;
/** A lane also rests where half of its tries within this time, in ms, have failed. */
const windowMs = 60_000;
/** Tries within that time below which half of them says nothing. */
const leastTries = 10;
/**
 * Milliseconds after which another request tries a lane that has rested, though the one before has not ended. One answer may take
 * minutes.
 */
const nextTrialMs = 5_000;
/** An upstream that asks for less time, in ms, gets this. Several requests a second would still come. */
const leastAskedMs = 1_000;

/** The state of one lane, or of one model at it. It is kept in memory, by each process for itself. */
export class Resting {
  readonly #clock: Clock;
  #untilMs = 0;
  /** Rests since it last worked. */
  #rests = 0;
  /** Counts up with each rest, and with the success that ends a row of them. */
  #era = 0;
  #inRow = 0;
  #window = { fromMs: 0, tries: 0, failures: 0 };
  /** Tries under way that began in this era. */
  #probes = 0;
  #lastBeganAt = 0;
  #reason: Outcome | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Milliseconds until its rest is over. 0: it does not rest. */
  get leftMs(): number {
    return Math.max(0, this.#untilMs - this.#clock.steady());
  }

  /** Why it gets no request: its last rest is not over, or one request has just begun to try whether it works again. */
  get reason(): Outcome | undefined {
    const isRecent = this.#clock.steady() - this.#lastBeganAt < nextTrialMs;
    const isProbed = this.#rests > 0 && this.#probes > 0 && isRecent;
    return this.leftMs > 0 || isProbed ? this.#reason : undefined;
  }

  /** A try begins. Answers what is called once with its outcome. That answers the length of the rest that begins, in ms. */
  begin(): (outcome: Outcome, askedMs?: number) => number | undefined {
    const era = this.#era;
    this.#probes++;
    this.#lastBeganAt = this.#clock.steady();
    let isOver = false;
    return (outcome, askedMs) => {
      if (isOver) return undefined;
      isOver = true;
      // A try from before the last rest, or the last success, says nothing new.
      const isOld = era !== this.#era;
      if (!isOld) this.#probes--;
      return this.#ended(outcome, isOld, askedMs);
    };
  }

  /** An answer that had begun broke off. During a rest that says nothing new: all answers of a server break off together. */
  brokeOff(): number | undefined {
    if (this.leftMs > 0) return undefined;
    return this.#ended("failed", false);
  }

  #ended(outcome: Outcome, isOld: boolean, askedMs?: number): number | undefined {
    const { rest, isTelling = true } = outcomes[outcome];
    if (!isTelling || isOld) return undefined;
    const isFailing = this.#counted(rest?.afterFailures === true);
    if (!rest) {
      if (this.#rests > 0) this.#restart(0);
      return undefined;
    }
    // A lane that has rested and fails at once rests again.
    if (rest.afterFailures && !isFailing && this.#rests === 0) return undefined;
    const ms = lengthOf(rest, this.#rests, askedMs);
    this.#restart(this.#rests + 1);
    this.#reason = outcome;
    this.#untilMs = this.#clock.steady() + ms;
    return ms;
  }

  #restart(rests: number): void {
    this.#era++;
    this.#rests = rests;
    this.#probes = 0;
    this.#inRow = 0;
    this.#window = { fromMs: this.#clock.steady(), tries: 0, failures: 0 };
  }

  /** Counts a try. Answers whether the failures are now enough for a rest. */
  #counted(isFailure: boolean): boolean {
    const nowMs = this.#clock.steady();
    if (nowMs - this.#window.fromMs > windowMs) {
      this.#window = { fromMs: nowMs, tries: 0, failures: 0 };
    }
    const window = this.#window;
    window.tries++;
    if (isFailure) window.failures++;
    this.#inRow = isFailure ? this.#inRow + 1 : 0;
    const isHalf = window.tries >= leastTries && window.failures * 2 >= window.tries;
    return isFailure && (this.#inRow >= failuresInRow || isHalf);
  }
}

function lengthOf({ firstMs, longestMs, asAsked }: Rest, rests: number, askedMs?: number): number {
  const wanted = asAsked && askedMs !== undefined ? Math.max(askedMs, leastAskedMs) : undefined;
  return Math.min(wanted ?? firstMs * 2 ** rests, longestMs);
}
