import type { Clock } from "#kit/clock.ts";
import type { Unseen } from "../upstreams/text/hidden-output.ts";
import type { StreamAnswer } from "../upstreams/text/port.ts";
import { caughtUpMs, hostedCallTokens, longestPauseMs, silentItemTokens } from "./limits.ts";
import type { ShownText } from "./pace.ts";
import type { TokenBounds } from "./pricing.ts";
import { bytesPerToken } from "./tokens/count.ts";

/** The time in which an upstream worked on what no caller sees. */
export interface UnseenTime {
  /** Upstream is waited for from now on. */
  waits(): void;
  /** Something came, or the wait is over. */
  came(): void;
  /** The reader takes no more from now on: upstream works on, and what it says is read later. */
  held(): void;
  /** Milliseconds so far. */
  ms(): number;
  /** Of them, those of long silence alone: no model is as slow, whether it is known to think or not. */
  longMs(): number;
  /** Text that came while it was waited for, and the time for which upstream was waited for between its parts and did not think. */
  text(): ShownText;
}

/** What tells whether silence was thought. */
export interface UnseenTimeOptions {
  clock: Clock;
  /** The model may think unseen. */
  mayThink: boolean;
  /** From dispatch to the answer's beginning. */
  firstWaitMs: number;
  /** Text that has come so far, in bytes of UTF-8. */
  bytes(): number;
  /** Bytes of text that the model makes in a second, as far as is known. */
  bytesPerSecondOf(shown: ShownText): number;
}

/** The reader took nothing, and has not caught up since. */
interface Holding {
  /** Since then it takes nothing; undefined: it does again. */
  sinceMs: number | undefined;
  /** For which it took nothing. */
  ms: number;
  /** For which upstream was waited for since it takes again. */
  waitedMs: number;
  fromBytes: number;
  isBetweenTexts: boolean;
}

/**
 * Measures, by the monotonic clock, how long a stream was waited for while its model may have thought: from dispatch to the
 * first text, between items, and where its text pauses; of a model that is said not to think, long silence alone. While the reader
 * takes nothing upstream works on: of that time what the text took that is found behind it was not thought.
 */
export function createUnseenTime(
  { unseen }: Pick<StreamAnswer, "unseen">,
  { clock, mayThink, firstWaitMs, bytes, bytesPerSecondOf }: UnseenTimeOptions,
): UnseenTime {
  let sum = mayThink ? firstWaitMs : 0;
  let textMs = 0;
  /** Of the batch that brought the first text: the wait for it may have been thought. */
  let firstBytes = 0;
  /** Of what was found behind a reader that took nothing. */
  let foundBytes = 0;
  /** To the first output, of a model that is not known to think; and of any. */
  let firstMs = mayThink ? 0 : firstWaitMs;
  let silentMs = firstWaitMs;
  let long = 0;
  let since: number | undefined;
  let holding: Holding | undefined;
  let isThinking = false;
  let isBetweenTexts = false;
  const text = () => {
    const found = foundBytes + (holding ? bytes() - holding.fromBytes : 0);
    return { bytes: Math.max(0, bytes() - firstBytes - found), ms: textMs };
  };
  const takesAgain = () => {
    if (holding?.sinceMs === undefined) return;
    holding.ms += clock.steady() - holding.sinceMs;
    holding.sinceMs = undefined;
  };
  const thoughtIn = ({ ms, fromBytes, isBetweenTexts: isBetween }: Holding) => {
    if (!mayThink && !unseen?.hasReasoned) return 0;
    const spokenMs = ((bytes() - fromBytes) * 1_000) / bytesPerSecondOf(text());
    const thoughtMs = Math.max(0, ms - spokenMs);
    return isBetween || thoughtMs >= longestPauseMs ? thoughtMs : 0;
  };
  return {
    waits() {
      if (!unseen) return;
      takesAgain();
      if (firstBytes === 0) firstBytes = bytes();
      isThinking = mayThink || unseen.hasReasoned;
      since = clock.steady();
      isBetweenTexts = unseen.isBetweenTexts;
    },
    came() {
      takesAgain();
      if (since === undefined) return;
      const ms = clock.steady() - since;
      since = undefined;
      if (bytes() === 0) silentMs += ms;
      else if (ms >= longestPauseMs) long += ms;
      if (!isThinking && bytes() === 0) firstMs += ms;
      else if ((isThinking && isBetweenTexts) || ms >= longestPauseMs) sum += ms;
      else if (!holding) textMs += ms;
      if (!holding) return;
      holding.waitedMs += ms;
      if (holding.waitedMs < caughtUpMs) return;
      sum += thoughtIn(holding);
      foundBytes += bytes() - holding.fromBytes;
      holding = undefined;
    },
    held() {
      if (!unseen) return;
      if (firstBytes === 0) firstBytes = bytes();
      const { isBetweenTexts: isBetween } = unseen;
      holding ??= {
        ...{ sinceMs: undefined, ms: 0, waitedMs: 0 },
        ...{ fromBytes: bytes(), isBetweenTexts: isBetween },
      };
      holding.sinceMs ??= clock.steady();
      holding.waitedMs = 0;
    },
    ms() {
      const thought = holding ? thoughtIn(holding) : 0;
      return sum + thought + (firstMs >= longestPauseMs ? firstMs : 0);
    },
    longMs: () => long + (silentMs >= longestPauseMs ? silentMs : 0),
    text,
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
