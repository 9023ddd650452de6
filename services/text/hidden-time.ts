import type { Clock } from "#kit/clock.ts";
import type { Unseen } from "../upstreams/text/hidden-output.ts";
import type { StreamAnswer } from "../upstreams/text/port.ts";
import { hostedCallTokens, longestPauseMs, silentItemTokens } from "./limits.ts";
import type { TokenBounds } from "./pricing.ts";
import { bytesPerToken } from "./tokens/count.ts";

/** The time in which an upstream worked on what no caller sees. */
export interface UnseenTime {
  /** Upstream is waited for from now on. */
  waits(): void;
  /** Something came, or the wait is over. */
  came(): void;
  /** Milliseconds so far. */
  ms(): number;
  /** Milliseconds for which upstream was waited for between its texts, and did not think. */
  textMs(): number;
}

/** What tells whether silence was thought. */
export interface UnseenTimeOptions {
  clock: Clock;
  /** The model may think unseen. */
  mayThink: boolean;
  /** From dispatch to the answer's beginning. */
  firstWaitMs: number;
  /** Has any output come? */
  hasOutput(): boolean;
}

/**
 * Measures, by the monotonic clock, how long a stream was waited for while its model may have thought: from dispatch to the
 * first text, between items, and where its text pauses; of a model that is said not to think, long silence alone. What the reader keeps
 * waiting is not upstream's time.
 */
export function createUnseenTime(
  { unseen }: Pick<StreamAnswer, "unseen">,
  { clock, mayThink, firstWaitMs, hasOutput }: UnseenTimeOptions,
): UnseenTime {
  let sum = mayThink ? firstWaitMs : 0;
  let textMs = 0;
  /** To the first output, of a model that is not known to think. */
  let firstMs = mayThink ? 0 : firstWaitMs;
  let since: number | undefined;
  let isThinking = false;
  let isBetweenTexts = false;
  return {
    waits() {
      if (!unseen) return;
      isThinking = mayThink || unseen.hasReasoned;
      since = clock.steady();
      isBetweenTexts = unseen.isBetweenTexts;
    },
    came() {
      if (since === undefined) return;
      const ms = clock.steady() - since;
      since = undefined;
      if (!isThinking && !hasOutput()) firstMs += ms;
      else if ((isThinking && isBetweenTexts) || ms >= longestPauseMs) sum += ms;
      else textMs += ms;
    },
    ms: () => sum + (firstMs >= longestPauseMs ? firstMs : 0),
    textMs: () => textMs,
  };
}

/**
 * Tokens of output that the caller did not see, where upstream does not say: what the sealed state hides, what items that show nothing
 * are at least, or what the time was enough for, whichever is the most; less the reasoning that was shown, which is counted already.
 */
export function unseenTokens(
  unseen: Unseen | undefined,
  { ms, tokensPerSecond }: { ms: number; tokensPerSecond: number },
): number {
  const { sealedCharacters = 0, shownCharacters = 0, silentItems = 0 } = unseen ?? {};
  const sealed = Math.ceil((sealedCharacters * 3) / 4 / bytesPerToken);
  const hidden = sealed + silentItems * silentItemTokens;
  const timed = Math.ceil((ms * tokensPerSecond) / 1_000);
  return Math.max(0, Math.max(hidden, timed) - Math.floor(shownCharacters / bytesPerToken));
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
