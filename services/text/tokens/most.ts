import { compositionOf } from "../../upstreams/text/judging/output-margin.ts";
import { elsewhereFactors } from "../../upstreams/text/limits.ts";

/** Tokens of some text. */
export interface Tokens {
  /** By our own vocabulary. */
  tokens: number;
  /**
   * By whichever vocabulary of a model makes the most of it: no fewer than nine tenths of what any of those measured counts
   * (docs/decisions/text.md). What a caller costs that leaves before its upstream says what it used.
   */
  most: number;
}

/** Digits in one token of our vocabulary; others have a token for each. */
const digitsPerToken = 3;
/** Runs of digits, and of newlines, for which one vocabulary has a token and another one for each character. */
const runs = /[0-9]+|\n{2,}/g;

/** What most texts are, which is found natively: nothing but ASCII, and no short repetition. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
const plain = /^[\x00-\x7f]*$/;
const repetition = /(\S.{0,3}?)\1{7}/s;

/** {@link Tokens.most} of a text that has so many `tokens` by our own count. */
export function mostTokens(text: string, tokens: number): number {
  let ofRuns = 0;
  let ours = 0;
  const rest = text.replace(runs, (run) => {
    ofRuns += run.length;
    ours += run.startsWith("\n") ? 1 : Math.ceil(run.length / digitsPerToken);
    return "";
  });
  const ofRest = Math.max(0, tokens - ours);
  if (plain.test(rest) && !repetition.test(rest)) {
    return Math.max(tokens, Math.ceil(ofRest * elsewhereFactors.close) + ofRuns);
  }
  const { close, script, loose, elsewhere, unmeasured } = compositionOf(rest);
  const bytes = close + script + loose;
  const factor = bytes === 0 ? 1 : elsewhere / bytes;
  return Math.max(tokens, Math.ceil(ofRest * factor + unmeasured) + ofRuns);
}
