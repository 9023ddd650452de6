// Guesses tokens that no one has seen, from the time in which an upstream was silent. This is charged only to callers that leave
// before usage is reported.

import type { Clock } from "#kit/time/clock.ts";
import type { Unseen } from "../../upstreams/text/judging/hidden-output.ts";
import { caughtUpMs, hostedCallTokens, longestPauseMs, silentItemTokens } from "../base/limits.ts";
import { bytesPerToken } from "../tokens/count.ts";
import type { TokenBounds } from "./pricing.ts";

/** Measures the time in which an answer brings no output, for a caller that leaves before its usage is known. */
export interface Silence {
  /** Text with this many characters came. */
  spoke(characters: number): void;
  /** The caller takes nothing from now on. Output that the upstream makes meanwhile is read later. */
  held(): void;
  /** The caller takes more: genmesh waits for the upstream again. */
  waits(): void;
  /** The caller left, or the answer is complete. No more time is counted. */
  over(): void;
  /** Tokens of output for which the time so far counts. */
  tokens(): number;
}

const nothing = () => {};
/** The silence of a model for which it does not count. */
const uncounted: Silence = {
  ...{ spoke: nothing, held: nothing, waits: nothing, over: nothing },
  tokens: () => 0,
};

/**
 * Measures silence from now on, by the monotonic clock: the whole time before the first text, then each pause of at least {@link
 * longestPauseMs}. Time in which the caller took nothing is reduced by the text that is found behind it. That text was made meanwhile,
 * and is counted already. `tokensPerSecond`: the tokens of one second, by the model's catalog entry. 0: silence does not count.
 */
export function createSilence(clock: Clock, tokensPerSecond: number): Silence {
  if (tokensPerSecond === 0) return uncounted;
  let sinceMs = clock.steady();
  let hasSpoken = false;
  let isHeld = false;
  let isOver = false;
  let waitedMs = 0;
  let heldMs = 0;
  /** Milliseconds of waiting for the upstream since then. */
  let sinceHeldMs = 0;
  let foundCharacters = 0;
  const next = (isHeldNext: boolean) => {
    if (isOver) return;
    const ms = clock.steady() - sinceMs;
    sinceMs += ms;
    const isCounted = !hasSpoken || ms >= longestPauseMs;
    if (!isHeld) sinceHeldMs += ms;
    else if (isCounted) sinceHeldMs = 0;
    if (isCounted && isHeld) heldMs += ms;
    else if (isCounted) waitedMs += ms;
    isHeld = isHeldNext;
  };
  const tokensIn = (ms: number) => Math.ceil((ms * tokensPerSecond) / 1_000);
  return {
    spoke(characters) {
      next(false);
      hasSpoken = true;
      if (heldMs > 0 && sinceHeldMs < caughtUpMs) foundCharacters += characters;
    },
    held: () => next(true),
    waits: () => next(false),
    over() {
      next(false);
      isOver = true;
    },
    tokens() {
      const found = Math.floor(foundCharacters / bytesPerToken);
      return tokensIn(waitedMs) + Math.max(0, tokensIn(heldMs) - found);
    },
  };
}

/**
 * Tokens of output that the caller did not see, where the upstream does not report them. Sealed state counts, with a minimum for each
 * item that shows nothing. The same reasoning is in `silentTokens` (see {@link Silence}), so the larger of both counts. Reasoning that
 * was shown is subtracted, because it is counted already.
 */
export function unseenTokens(unseen: Unseen | undefined, silentTokens: number): number {
  const { sealedCharacters = 0, shownCharacters = 0, silentItems = 0 } = unseen ?? {};
  const sealed = Math.ceil((sealedCharacters * 3) / 4 / bytesPerToken);
  const hidden = sealed + silentItems * silentItemTokens;
  return Math.max(0, Math.max(hidden, silentTokens) - Math.floor(shownCharacters / bytesPerToken));
}

/**
 * Tokens of input from tools that the upstream carries out, where it does not report them. Each call that was seen counts with a fixed
 * number. Where calls cannot be seen, the whole input of the hold counts.
 */
export function unseenInput(
  unseen: Unseen | undefined,
  { hosted, bounds }: { hosted: boolean; bounds: TokenBounds },
): number {
  if (!hosted) return 0;
  const calls = unseen?.hostedCalls;
  return calls === undefined ? bounds.input : calls * hostedCallTokens;
}
