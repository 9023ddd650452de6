import { fastestTokensPerSecond, ownPace, unseenTokensPerSecond } from "./limits.ts";
import { bytesPerToken } from "./tokens/count.ts";

/** Text of an answer that its caller was sent, and the time in which it came. */
export interface ShownText {
  /** In UTF-8, without what came first: the wait for that may have been thought. */
  bytes: number;
  /** For which upstream was waited for between its parts, long pauses left out. */
  ms: number;
}

/** What is known of how fast a model is. */
export interface PaceHints {
  /** What its catalog says; 0: nothing. */
  said: number;
  /** Of the very answer that was left; absent: none was sent. */
  shown?: ShownText | undefined;
}

/**
 * Tokens that a second of a model's silence is taken for, where its caller left. What the catalog says counts alone. Without it this
 * answer's own text tells, by its bytes, since no token is shorter; and without that, as many as any model makes. Other answers teach
 * nothing: a caller decides what they wait for and how quickly they are read, and so could make a model look slow for itself, or fast for
 * other accounts.
 */
export function unseenPace({ said, shown }: PaceHints): number {
  if (said > 0) return said;
  const own = ownBytesPerSecond(shown);
  if (own === undefined) return fastestTokensPerSecond;
  return Math.min(fastestTokensPerSecond, Math.max(unseenTokensPerSecond, Math.ceil(own)));
}

/**
 * Bytes of text that a model makes in a second, for how long it spoke of what its caller did not take at once: by this answer's own text,
 * or else as its catalog says, or as usual models do.
 */
export function textPace({ said, shown }: PaceHints): number {
  return ownBytesPerSecond(shown) ?? (said || unseenTokensPerSecond) * bytesPerToken;
}

/** Undefined where too little was shown. */
function ownBytesPerSecond({ bytes, ms }: ShownText = { bytes: 0, ms: 0 }): number | undefined {
  if (bytes < ownPace.bytes || ms < ownPace.ms) return undefined;
  return (bytes * 1_000) / ms;
}
