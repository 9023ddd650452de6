// Counts and cuts the text model's own text by tokens. The text service counts what it charges by code of its own.

import { countTokens, decode, encode } from "gpt-tokenizer/encoding/o200k_base";

/** Beyond this many characters, tokens count as long as those before. This bounds the time of one count. */
const exactChars = 512 * 1024;
/** The tokenizer's time is quadratic in a run without breaks, so it gets no more than this at once. */
const pieceChars = 1024;
/** The same for a piece without a gap, the worst case. */
const solidChars = 256;

// Names of special tokens count as ordinary text.
const asText = { disallowedSpecial: new Set<string>() };

/** Tokens of o200k_base in a text. The number is exact up to {@link exactChars}, and beyond that follows the density so far. */
export function count(text: string): number {
  const counted = Math.min(text.length, exactChars);
  let tokens = 0;
  for (const piece of piecesOf(text, counted)) tokens += countTokens(piece, asText);
  return counted === text.length ? tokens : Math.ceil((tokens * text.length) / counted);
}

/** The longest beginning of at most `tokens` tokens that is whole characters. */
export function cut(text: string, tokens: number): string {
  let left = tokens;
  let end = 0;
  for (const piece of piecesOf(text, text.length)) {
    const found = encode(piece, asText);
    if (found.length > left) {
      // A cut within a character decodes to a replacement character.
      const rest = left > 0 ? decode(found.slice(0, left)).replace(/\uFFFD+$/, "") : "";
      return text.slice(0, end) + rest;
    }
    left -= found.length;
    end += piece.length;
  }
  return text;
}

/** The text up to `end`, in pieces that end before a single space, where tokens never join. Otherwise they end anywhere. */
function* piecesOf(text: string, end: number): Iterable<string> {
  for (let at = 0; at < end; ) {
    const next = pieceEnd(text, at, end);
    yield text.slice(at, next);
    at = next;
  }
}

function pieceEnd(text: string, start: number, end: number): number {
  const most = start + pieceChars;
  if (most >= end) return end;
  for (let at = most; at > start; at--) {
    const isGap = text[at] === " " && text[at - 1] !== " " && text[at + 1] !== " ";
    if (isGap && text[at - 1] !== "\n") return at;
  }
  const solid = start + solidChars;
  const code = text.charCodeAt(solid);
  // Not between the halves of a surrogate pair.
  return code >= 0xdc00 && code <= 0xdfff ? solid - 1 : solid;
}
