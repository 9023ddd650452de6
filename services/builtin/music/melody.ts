// Invents tunes. `compose.ts` puts them into a piece.

import type { Random } from "../seed.ts";
import { nearestChordTone } from "./theory.ts";

/** A note of a tune before it gets a time: beats from the bar's start, and a scale degree. */
export type Step = { readonly beat: number; readonly beats: number; readonly degree: number };

/** Rhythms of one bar in beats; negative numbers are rests. */
const RHYTHMS_OF_FOUR: readonly (readonly number[])[] = [
  [1, 1, 1, 1],
  [1.5, 0.5, 1, 1],
  [0.5, 0.5, 1, 0.5, 0.5, 1],
  [-0.5, 0.5, 1, 0.5, 0.5, 1],
  [1, 0.5, 0.5, 2],
  [0.75, 0.75, 0.5, 1, 1],
  [2, 1, 1],
  [1.5, 1.5, 1],
  [-1, 0.5, 0.5, 0.5, 0.5, 1],
];
const RHYTHMS_OF_THREE: readonly (readonly number[])[] = [
  [1, 1, 1],
  [2, 1],
  [1.5, 0.5, 1],
  [1, 0.5, 0.5, 1],
  [0.5, 0.5, 1, 1],
];
const LAST_OF_FOUR: readonly (readonly number[])[] = [
  [3, -1],
  [1, 1, 2],
  [0.5, 0.5, 3],
];
const LAST_OF_THREE: readonly (readonly number[])[] = [[3], [1, 2]];

/** The range of a tune in scale degrees above its root. */
const LOWEST_DEGREE = 2;
const HIGHEST_DEGREE = 13;

/**
 * Invents a phrase of four bars: an idea, its answer, the idea again, and an ending. Strong beats have notes of the chord, and the
 * notes between move by steps.
 */
export function inventPhrase(
  chords: readonly number[],
  beatsPerBar: 3 | 4,
  random: Random,
): Step[][] {
  const rhythms = beatsPerBar === 4 ? RHYTHMS_OF_FOUR : RHYTHMS_OF_THREE;
  const endings = beatsPerBar === 4 ? LAST_OF_FOUR : LAST_OF_THREE;
  const idea = random.pick(rhythms);
  const answer = random.pick(rhythms);
  const contour = Array.from({ length: 8 }, () => random.pick([-2, -1, -1, 1, 1, 2, 3, -3]));
  let degree = 7 + random.below(4) - 2;
  return chords.map((chord, bar) => {
    const last = bar === chords.length - 1;
    const rhythm = last ? random.pick(endings) : bar % 2 === 0 ? idea : answer;
    const steps: Step[] = [];
    let beat = 0;
    for (const [index, beats] of rhythm.entries()) {
      const length = Math.abs(beats);
      if (beats > 0) {
        degree += contour[(index + (bar % 2) * 3) % contour.length] as number;
        if (Number.isInteger(beat) || last) degree = nearestChordTone(chord, degree);
        if (degree < LOWEST_DEGREE) degree += 4;
        if (degree > HIGHEST_DEGREE) degree -= 4;
        steps.push({ beat, beats: length, degree });
      }
      beat += length;
    }
    return steps;
  });
}
