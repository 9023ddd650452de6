// Says by how much tokenizers differ over a text. An upstream that keeps to its bound by its own tokenizer must not be cut.

import { cutMargin, elsewhereFactors, maxComposedCharacters, scriptFactors } from "../limits.ts";

/** The bytes of a text (UTF-8), by how far tokenizers differ over them. */
export interface Composition {
  /** Text that all vocabularies know about equally well: words of ASCII letters, code, numbers, base64. */
  close: number;
  /** Words with letters of another script, or with accents. */
  script: number;
  /** Rare scripts, emoji and short repetitions. One vocabulary has long tokens for them, another only bytes. */
  loose: number;
  /** All bytes, each multiplied by a factor: how many more tokens another vocabulary may make of it than this one does. */
  elsewhere: number;
  /** Bytes of scripts that were not measured. Another vocabulary may have at most one token for each. They are not in `elsewhere`. */
  unmeasured: number;
}

/** A repetition repeats at most this many characters, and at least this many times. Some vocabularies have tokens for those. */
const longestRepeated = 4;
const leastRepetitions = 8;
/** A long text is judged by this many parts of it. */
const samples = 16;
/** Some servers write the arguments of a call again, with escapes for letters that are not ASCII or could end a script in a page. */
const escapes = /\\u([0-9a-f]{4})/gi;
const escapedAscii = "<>&'";

/** The composition of an empty text. */
export function nothing(): Composition {
  return { close: 0, script: 0, loose: 0, elsewhere: 0, unmeasured: 0 };
}

/** The composition of a text. That of a long text is made from parts of it. */
export function compositionOf(text: string): Composition {
  if (text.length <= maxComposedCharacters) return composed(text);
  const sum = nothing();
  const length = Math.floor(maxComposedCharacters / samples);
  for (let i = 0; i < samples; i++) {
    const at = Math.floor(((text.length - length) * i) / (samples - 1));
    add(sum, composed(text.slice(at, at + length)));
  }
  const scale = text.length / maxComposedCharacters;
  return {
    close: sum.close * scale,
    script: sum.script * scale,
    loose: sum.loose * scale,
    elsewhere: sum.elsewhere * scale,
    unmeasured: sum.unmeasured * scale,
  };
}

/** Adds the composition of further text. */
export function add(sum: Composition, more: Composition): void {
  sum.close += more.close;
  sum.script += more.script;
  sum.loose += more.loose;
  sum.elsewhere += more.elsewhere;
  sum.unmeasured += more.unmeasured;
}

type Kind = "close" | "script" | "loose";

function composed(text: string): Composition {
  const sum = nothing();
  /** Bytes of ASCII letters in the word that is under way. `hasOthers`: does the word have other letters? */
  let letters = 0;
  let hasOthers = false;
  let wasRepeated = false;
  const same = new Uint32Array(longestRepeated + 1);
  const endWord = () => {
    sum[hasOthers ? "script" : "close"] += letters;
    sum.elsewhere += letters * elsewhereFactors[hasOthers ? "script" : "close"];
    letters = 0;
    hasOthers = false;
  };
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    let repeated = 0;
    for (let period = 1; period <= longestRepeated; period++) {
      same[period] = text.charCodeAt(i - period) === code ? (same[period] ?? 0) + 1 : 0;
      if ((same[period] ?? 0) >= (leastRepetitions - 1) * period) repeated ||= period;
    }
    // All vocabularies have tokens for indentation.
    if (code === 0x20 || code === 0x09) repeated = 0;
    // Adds the characters of the repetition that came before it was noticed.
    if (repeated && !wasRepeated) {
      sum.loose += (leastRepetitions - 1) * repeated;
      sum.elsewhere += (leastRepetitions - 1) * repeated * elsewhereFactors.loose;
    }
    wasRepeated = repeated > 0;
    const kind = wasRepeated ? "loose" : kindOf(code);
    if (kind === "close" && isLetter(code)) letters++;
    else {
      if (kind === "script") hasOthers = true;
      else endWord();
      sum[kind] += bytesOf(code);
      const factor = wasRepeated || code < 0x80 ? elsewhereFactors[kind] : factorOf(code);
      if (factor === undefined) sum.unmeasured += bytesOf(code);
      else sum.elsewhere += bytesOf(code) * factor;
    }
  }
  endWord();
  return sum;
}

/** Scripts over which the tokenizers of today differ by a factor of less than two. They are in every vocabulary. */
const scripts: readonly [from: number, to: number][] = [
  // Latin with accents, Greek, Cyrillic.
  [0xc0, 0x24f],
  [0x370, 0x52f],
  // Hebrew, Arabic, the scripts of India, Thai.
  [0x590, 0x6ff],
  [0x900, 0xe7f],
  [0x1e00, 0x1fff],
  // Chinese, Japanese, Korean.
  [0x3000, 0x30ff],
  [0x4e00, 0x9fff],
  [0xac00, 0xd7af],
  [0xff00, 0xffef],
];

/** Scripts and letters that were measured. The more special ones come first. */
const measured: readonly [from: number, to: number, factor: number][] = [
  [0x00, 0x36f, elsewhereFactors.script],
  [0x370, 0x3ff, scriptFactors.greek],
  [0x400, 0x48f, scriptFactors.cyrillic],
  [0x490, 0x52f, scriptFactors.kazakh],
  [0x531, 0x58f, scriptFactors.armenian],
  [0x590, 0x5ff, scriptFactors.hebrew],
  // Letters of Urdu in the order of their codes. Those of Persian lie between them.
  [0x679, 0x67d, scriptFactors.urdu],
  [0x687, 0x697, scriptFactors.urdu],
  [0x6ba, 0x6c3, scriptFactors.urdu],
  [0x6d2, 0x6d3, scriptFactors.urdu],
  [0x600, 0x6ff, scriptFactors.arabic],
  [0x900, 0x97f, scriptFactors.devanagari],
  [0x980, 0xdff, scriptFactors.indic],
  [0xe00, 0xe7f, scriptFactors.thai],
  [0xf00, 0xfff, elsewhereFactors.loose],
  [0x1000, 0x109f, scriptFactors.burmese],
  [0x10a0, 0x10ff, scriptFactors.georgian],
  // Ethiopic and Cherokee.
  [0x1200, 0x13ff, elsewhereFactors.loose],
  [0x1780, 0x17ff, scriptFactors.khmer],
  [0x1e00, 0x1eff, elsewhereFactors.script],
  [0x1f00, 0x1fff, scriptFactors.greek],
  // Punctuation and symbols, then Braille.
  [0x2000, 0x2bff, elsewhereFactors.loose],
  [0x3000, 0x30ff, elsewhereFactors.script],
  [0x4e00, 0x9fff, elsewhereFactors.script],
  [0xac00, 0xd7af, scriptFactors.korean],
  // Emoji are halves of surrogate pairs, and the selectors behind them.
  [0xd800, 0xdfff, elsewhereFactors.loose],
  [0xfe00, 0xfe0f, elsewhereFactors.loose],
  [0xff00, 0xffef, elsewhereFactors.script],
];

/** How many more tokens another tokenizer makes of a character than the one here. Undefined: not measured. */
function factorOf(code: number): number | undefined {
  return measured.find(([from, to]) => code >= from && code <= to)?.[2];
}

function kindOf(code: number): Kind {
  if (code < 0x80) return "close";
  return scripts.some(([from, to]) => code >= from && code <= to) ? "script" : "loose";
}

function bytesOf(code: number): number {
  if (code < 0x80) return 1;
  // Half of a surrogate pair. The pair is four bytes.
  return code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 2 : 3;
}

function isLetter(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
}

/** The text to count: the characters that its escapes mean, not the escapes. */
export function countedText(text: string): string {
  if (!text.includes("\\u")) return text;
  return text.replace(escapes, (found, digits) => {
    const code = Number.parseInt(digits, 16);
    const character = String.fromCharCode(code);
    return code >= 0x80 || escapedAscii.includes(character) ? character : found;
  });
}

/** The most tokens, by the count of genmesh, of an upstream that keeps to a bound by its own tokenizer. */
export function mostTokens(bound: number, { close, script, loose }: Composition): number {
  const { factors, tokens } = cutMargin;
  const all = close + script + loose;
  const weighted = close * factors.close + script * factors.script + loose * factors.loose;
  return Math.floor(bound * (all === 0 ? factors.close : weighted / all)) + tokens;
}
