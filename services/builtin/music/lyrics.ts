// Splits lyrics into syllables that can be sung. `compose.ts` sets them to notes, and `singer.ts` sings them.

import { lyricsCharacters } from "../limits.ts";
import { soundsOf } from "../speech/letters.ts";
import { type PhonemeName, phonemeOf } from "../speech/phonemes.ts";

/** The phonemes that are sung on one note. One of them is a vowel that can be held. */
export type Syllable = readonly PhonemeName[];

/** Syllables of one line at most. A longer line goes on in the next. */
const MAX_SYLLABLES_A_LINE = 12;

/** Splits lyrics into lines of syllables. Headings in brackets and empty lines are left out. */
export function splitLyrics(lyrics: string): Syllable[][] {
  const text = lyrics.toWellFormed().slice(0, lyricsCharacters);
  const lines: Syllable[][] = [];
  for (const line of text.split(/[\n.!?;。！？]+/u)) {
    const words = withoutHeadings(line).match(/[\p{Letter}\p{Number}'’]+/gu) ?? [];
    let current: Syllable[] = [];
    for (const word of words) {
      const syllables = splitSyllables(soundsOf(word.replace(/['’]/g, ""), undefined));
      if (current.length + syllables.length > MAX_SYLLABLES_A_LINE && current.length > 0) {
        lines.push(current);
        current = [];
      }
      current.push(...syllables);
    }
    if (current.length > 0) lines.push(current);
  }
  return lines;
}

/** Each heading becomes a blank. A pattern would search for the end of each bracket without one, to the end of the line. */
function withoutHeadings(line: string): string {
  let kept = "";
  let from = 0;
  for (let open = line.indexOf("["); open !== -1; open = line.indexOf("[", from)) {
    const close = line.indexOf("]", open);
    if (close === -1) break;
    kept += `${line.slice(from, open)} `;
    from = close + 1;
  }
  return kept + line.slice(from);
}

/** Groups phonemes around their vowels. A consonant between two vowels begins the second syllable. */
function splitSyllables(sounds: readonly PhonemeName[]): Syllable[] {
  const syllables: PhonemeName[][] = [];
  let waiting: PhonemeName[] = [];
  for (const sound of sounds) {
    waiting.push(sound);
    if (phonemeOf(sound).vowel !== true) continue;
    const before = syllables.at(-1);
    // Of several consonants the first one ends the syllable before.
    if (before !== undefined && waiting.length > 2) before.push(waiting.shift() as PhonemeName);
    syllables.push(waiting);
    waiting = [];
  }
  const last = syllables.at(-1);
  if (last !== undefined) last.push(...waiting);
  else if (waiting.length > 0) syllables.push([...waiting, "ax"]);
  return syllables;
}
