import type { Clock } from "#kit/time/clock.ts";
import type { Unseen } from "../../upstreams/text/judging/hidden-output.ts";
import { caughtUpMs, hostedCallTokens, longestPauseMs, silentItemTokens } from "../base/limits.ts";
import { bytesPerToken } from "../tokens/count.ts";
import type { TokenBounds } from "./pricing.ts";

/** The time in which an answer brings no output, for a caller that leaves before its usage is known. */
export interface Silence {
  /** Text came, of so many characters. */
  spoke(characters: number): void;
  /** The caller takes nothing from now on: what upstream makes meanwhile is read later. */
  held(): void;
  /** The caller takes more: upstream is waited for again. */
  waits(): void;
  /** The caller left, or the answer is all there: no more time is counted. */
  over(): void;
  /** Tokens of output that the time until then counts as. */
  tokens(): number;
}

/**
 * Measures silence from now on, by the monotonic clock: all of the time before the first text, then each pause of at least
 * {@link longestPauseMs}. Of time in which the caller took nothing, the text that lay behind it is taken off: it was made
 * meanwhile, and is counted already. `tokensPerSecond`: what a second counts as, by the model's catalog entry; 0: nothing.
 */
export function createSilence(clock: Clock, tokensPerSecond: number): Silence {
  let sinceMs = clock.steady();
  let hasSpoken = false;
  let isHeld = false;
  let isOver = false;
  let waitedMs = 0;
  let heldMs = 0;
  /** For which upstream was waited for since then. */
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
 * Tokens of output that the caller did not see, where upstream does not say: what the sealed state hides, with what items that show
 * nothing are at least, or `silentTokens` (see {@link Silence}), whichever is more, for the same thought is in both; less the
 * reasoning that was shown, which is counted already.
 */
export function unseenTokens(unseen: Unseen | undefined, silentTokens: number): number {
  const { sealedCharacters = 0, shownCharacters = 0, silentItems = 0 } = unseen ?? {};
  const sealed = Math.ceil((sealedCharacters * 3) / 4 / bytesPerToken);
  const hidden = sealed + silentItems * silentItemTokens;
  return Math.max(0, Math.max(hidden, silentTokens) - Math.floor(shownCharacters / bytesPerToken));
}

/**
 * Tokens of input that tools which upstream carries out added, where upstream does not say: so many for each call that was seen;
 * where none could have been seen all that is held for input.
 */
export function unseenInput(
  unseen: Unseen | undefined,
  { hosted, bounds }: { hosted: boolean; bounds: TokenBounds },
): number {
  if (!hosted) return 0;
  const calls = unseen?.hostedCalls;
  return calls === undefined ? bounds.input : calls * hostedCallTokens;
}
