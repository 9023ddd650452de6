// The most tokens that any vocabulary may make of a text. genmesh counts with one vocabulary, and a model may have another.

import { compositionOf } from "../../upstreams/text/judging/output-margin.ts";
import { elsewhereFactors } from "../../upstreams/text/limits.ts";

/** Tokens of some text. */
export interface Tokens {
  /** Tokens by genmesh's own vocabulary. */
  tokens: number;
  /**
   * Tokens by the vocabulary of a model that makes the most of the text. They are at least nine tenths of the count of any measured
   * vocabulary (docs/decisions/text.md). A caller is charged for these if it leaves before its upstream reports its usage.
   */
  most: number;
}

/** Digits in one token of genmesh's vocabulary. Others have a token for each digit. */
const digitsPerToken = 3;
/** Runs of digits, and of newlines. One vocabulary has a token for a run, another one for each character. */
const runs = /[0-9]+|\n{2,}/g;

/** The form of most texts, which is found natively: only ASCII, and no short repetition. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: all of ASCII is meant.
const plain = /^[\x00-\x7f]*$/;
const repetition = /(\S.{0,3}?)\1{7}/s;

/** {@link Tokens.most} of a text that has this many `tokens` by genmesh's own count. */
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
