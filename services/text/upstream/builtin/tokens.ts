import { setImmediate as turn } from "node:timers/promises";

/** Counts and cuts by the tokens of o200k_base. */
export interface Tokenizer {
  /** Tokens of a text: exact up to {@link exactChars}, beyond that by the density so far. */
  count(text: string): Promise<number>;
  /** The longest beginning of at most `tokens` tokens that is whole characters. */
  cut(text: string, tokens: number): string;
}

/** The tokens of the next characters are taken to be as long as those before: a bound for the time of one count. */
const exactChars = 512 * 1024;
/** The tokenizer is quadratic in a run without breaks, so it sees no more than this at once. */
const pieceChars = 1024;
/** The same for a piece in which no gap was found, the worst case. */
const solidChars = 256;
/** Pieces after which others get their turn: under 10 ms even of the worst text. */
const piecesPerTurn = 8;

/** Loads the tokenizer on first use: 75 MB and 0.2 s that a process without builtin text need not spend. */
export async function loadTokenizer(): Promise<Tokenizer> {
  const { countTokens, encode, decode } = await import("gpt-tokenizer/encoding/o200k_base");
  // Names of special tokens in a text are text.
  const asText = { disallowedSpecial: new Set<string>() };
  return {
    async count(text) {
      const counted = Math.min(text.length, exactChars);
      let tokens = 0;
      let pieces = 0;
      for (let at = 0; at < counted; ) {
        const end = pieceEnd(text, at, counted);
        tokens += countTokens(text.slice(at, end), asText);
        at = end;
        if (++pieces % piecesPerTurn === 0) await turn();
      }
      return counted === text.length ? tokens : Math.ceil((tokens * text.length) / counted);
    },
    cut(text, tokens) {
      const all = encode(text, asText);
      if (all.length <= tokens) return text;
      // A cut within a character decodes to a replacement character.
      return decode(all.slice(0, tokens)).replace(/\uFFFD+$/, "");
    },
  };
}

/** Where a piece ends: before a single space, where tokens never join; else anywhere. */
function pieceEnd(text: string, start: number, end: number): number {
  const most = start + pieceChars;
  if (most >= end) return end;
  for (let at = most; at > start; at--) {
    const isGap = text[at] === " " && text[at - 1] !== " " && text[at + 1] !== " ";
    if (isGap && text[at - 1] !== "\n") return at;
  }
  return start + solidChars;
}
