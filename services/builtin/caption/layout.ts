// Breaks a caption into lines that fit its room, in any script.

import { captionSymbols } from "../limits.ts";
import { glyphOf, OUTLINE_SIZE } from "./fonts.ts";

/** Text broken into lines that fit. `cut`: did the end have to be left out? */
export type TextBlock = { readonly lines: readonly string[]; readonly cut: boolean };

/** The room for a text: widest line in pixels at a font size in pixels, and the number of lines. */
export type TextRoom = {
  readonly width: number;
  readonly fontSize: number;
  readonly lineCount: number;
};

const ELLIPSIS = "…";

/** Scripts that are written without spaces. A line may end after any of their symbols. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\p{Extended_Pictographic}]/u;

/** Splits a text into the symbols that a reader sees. */
export function splitSymbols(text: string): string[] {
  const segmenter = new Intl.Segmenter("en", { granularity: "grapheme" });
  const symbols: string[] = [];
  for (const { segment } of segmenter.segment(text)) {
    symbols.push(segment);
    if (symbols.length > captionSymbols) break;
  }
  return symbols;
}

/** Breaks a text into lines at spaces, inside unspaced scripts, and inside words that are too long. */
export function breakLines(text: string, room: TextRoom): TextBlock {
  const symbols = splitSymbols(printable(text));
  const widthOf = (symbol: string): number =>
    (glyphOf(symbol).advance * room.fontSize) / OUTLINE_SIZE;
  const measure = (word: readonly string[]): number =>
    word.reduce((sum, symbol) => sum + widthOf(symbol), 0);
  const lines: string[] = [];
  let line: string[] = [];
  const fits = (more: readonly string[]): boolean => measure([...line, ...more]) <= room.width;
  for (const word of splitWords(symbols)) {
    const spaced = line.length > 0 && word.spaceBefore ? [" ", ...word.symbols] : word.symbols;
    if (fits(spaced)) {
      line.push(...spaced);
      continue;
    }
    if (line.length > 0) lines.push(line.join(""));
    line = [];
    for (const symbol of word.symbols) {
      if (line.length > 0 && !fits([symbol])) {
        lines.push(line.join(""));
        line = [];
      }
      line.push(symbol);
    }
    if (lines.length > room.lineCount) break;
  }
  if (line.length > 0) lines.push(line.join(""));
  const cut = lines.length > room.lineCount || symbols.length > captionSymbols;
  if (!cut) return { lines, cut };
  const kept = lines.slice(0, room.lineCount);
  const last = splitSymbols(kept.pop() ?? "");
  while (last.length > 0 && measure([...last, ELLIPSIS]) > room.width) last.pop();
  return { lines: [...kept, `${last.join("").replace(/[\s,;:.]+$/, "")}${ELLIPSIS}`], cut };
}

/** The first of the letters that flags are made of. A flag is shown as its two letters. */
const FIRST_FLAG_LETTER = 0x1f1e6;

/** One line of printable symbols. Of control and invisible ones only the joiner of emoji stays. */
function printable(text: string): string {
  const spaced = text.toWellFormed().replace(/[\s\p{Cc}]+/gu, " ");
  const visible = spaced.replace(/(?!\u200d)\p{Cf}/gu, "");
  const lettered = visible.replace(/\p{Regional_Indicator}/gu, (letter) =>
    String.fromCharCode(65 + (letter.codePointAt(0) ?? FIRST_FLAG_LETTER) - FIRST_FLAG_LETTER),
  );
  return lettered.trim();
}

type Word = { readonly symbols: string[]; readonly spaceBefore: boolean };

function splitWords(symbols: readonly string[]): Word[] {
  const words: Word[] = [];
  let current: string[] = [];
  let spaceBefore = false;
  const finish = (): void => {
    if (current.length === 0) return;
    words.push({ symbols: current, spaceBefore });
    current = [];
    spaceBefore = false;
  };
  for (const symbol of symbols) {
    if (symbol === " ") {
      finish();
      spaceBefore = true;
    } else if (UNSPACED.test(symbol)) {
      finish();
      words.push({ symbols: [symbol], spaceBefore });
      spaceBefore = false;
    } else {
      current.push(symbol);
    }
  }
  finish();
  return words;
}
