import type { Clock } from "#kit/clock.ts";
import { unseenTokensPerSecond } from "./limits.ts";
import { bytesPerToken } from "./tokens/count.ts";
import type { StreamAnswer } from "./upstream/port.ts";
import type { Unseen } from "./upstream/unseen.ts";

/** The time in which an upstream worked on what nobody sees. */
export interface UnseenTime {
  /** Upstream is waited for from now on. */
  waits(): void;
  /** Something came, or the wait is over. */
  came(): void;
  /** Milliseconds so far. */
  ms(): number;
}

/**
 * Measures, by the monotonic clock, how long a stream was waited for while its model may have thought: from dispatch to the
 * first text, and between items. What the reader keeps waiting is not upstream's time.
 */
export function createUnseenTime(
  { unseen }: Pick<StreamAnswer, "unseen">,
  { clock, mayThink, firstWaitMs }: { clock: Clock; mayThink: boolean; firstWaitMs: number },
): UnseenTime {
  let sum = mayThink ? firstWaitMs : 0;
  let since: number | undefined;
  return {
    waits() {
      const isThinking = unseen?.isBetweenTexts && (mayThink || unseen.hasReasoned);
      since = isThinking ? clock.steady() : undefined;
    },
    came() {
      if (since !== undefined) sum += clock.steady() - since;
      since = undefined;
    },
    ms: () => sum,
  };
}

/**
 * Tokens of output that nobody saw, where upstream does not say: what the sealed state hides, or what the time was enough
 * for, whichever is more; less the reasoning that was shown, which is counted already.
 */
export function unseenTokens(unseen: Unseen | undefined, ms: number): number {
  const { sealedCharacters = 0, shownCharacters = 0 } = unseen ?? {};
  const sealed = Math.ceil((sealedCharacters * 3) / 4 / bytesPerToken);
  const timed = Math.ceil((ms * unseenTokensPerSecond) / 1_000);
  return Math.max(0, Math.max(sealed, timed) - Math.floor(shownCharacters / bytesPerToken));
}
