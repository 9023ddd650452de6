// Writes the score of a piece in the style that a prompt asks for. `band.ts` plays it.

import type { Random } from "../seed.ts";
import type { Bar, Score } from "./band.ts";
import type { Syllable } from "./lyrics.ts";
import { inventPhrase, type Step } from "./melody.ts";
import type { SungNote } from "./singer.ts";
import type { Taste } from "./style.ts";
import {
  BRIGHT_PROGRESSIONS,
  DARK_PROGRESSIONS,
  type Key,
  nearestChordTone,
  noteOf,
  SCALES,
} from "./theory.ts";

/** The least and the greatest length of a piece in seconds, without the fading of its last chord. */
const SHORTEST_SECONDS = 30;
const LONGEST_SECONDS = 53;
/** Voices sing an octave below the pitch at which instruments play the tune, because words are clearer there. */
const SUNG_BELOW_TUNE = 12;
/** Phrases are four bars long. */
const PHRASE_BARS = 4;

/** Parts of a piece: the phrase that is played, the players that join, and the loudness. */
type Part = { readonly phrase: "a" | "b"; readonly full: number; readonly energy: number };

/** Writes a piece in the style that the words asked for: opening, verse, contrast, return, end. */
export function compose(taste: Taste, random: Random): Score {
  const { style } = taste;
  const key: Key = { root: 57 + random.below(8), scale: SCALES[taste.scaleName] };
  const secondsPerBeat = 60 / taste.tempo;
  const phraseSeconds = secondsPerBeat * style.beatsPerBar * PHRASE_BARS;
  const wanted = random.between(36, 50);
  const most = Math.floor(LONGEST_SECONDS / phraseSeconds);
  const least = Math.ceil(SHORTEST_SECONDS / phraseSeconds);
  const count = Math.min(most, Math.max(least, Math.round(wanted / phraseSeconds)));
  const progressions = taste.dark ? DARK_PROGRESSIONS : BRIGHT_PROGRESSIONS;
  const chordsA = random.pick(progressions);
  const chordsB = random.pick(progressions.filter((other) => other !== chordsA));
  const tuneA = inventPhrase(chordsA, style.beatsPerBar, random.fork("tune a"));
  const tuneB = inventPhrase(chordsB, style.beatsPerBar, random.fork("tune b"));
  const bars = Array.from({ length: count }, (_, index) => partAt(index, count)).flatMap(
    (part, index) => {
      const chords = part.phrase === "a" ? chordsA : chordsB;
      const tune = part.phrase === "a" ? tuneA : tuneB;
      return chords.map((chord, bar): Bar => {
        const playing = index > 0 || bar >= 2 || part.full >= 2;
        return {
          chord,
          drums: part.full >= 2,
          bass: part.full >= 1,
          comp: part.full >= 1 || bar >= 2,
          tune: playing ? (tune[bar] ?? []) : [],
          energy: part.energy,
          opening: part.full >= 2 && bar === 0,
        };
      });
    },
  );
  return { taste, key, bars: [...bars, lastBar()], secondsPerBeat };
}

function partAt(index: number, count: number): Part {
  if (index === 0) return { phrase: "a", full: 0, energy: 0.85 };
  const last = count - 1;
  const middle = Math.floor(count / 2);
  if (index === middle && count >= 5) return { phrase: "b", full: 1, energy: 0.85 };
  if (index === last) return { phrase: "a", full: 2, energy: 1.05 };
  return index > middle && index < last
    ? { phrase: "b", full: 2, energy: 1 }
    : { phrase: "a", full: 2, energy: 0.95 };
}

function lastBar(): Bar {
  const tune: Step[] = [{ beat: 0, beats: 3, degree: 7 }];
  return { chord: 0, drums: false, bass: true, comp: false, tune, energy: 0.9, opening: true };
}

/**
 * Sets lines of syllables to a score. Each line takes two bars, one after another from the third bar on. When the lines run out, they
 * begin again. The tune leads, and chord notes fall on the beats.
 */
export function setLyrics(score: Score, lines: readonly Syllable[][], random: Random): SungNote[] {
  const { style } = score.taste;
  const notes: SungNote[] = [];
  const firstBar = 2;
  const barBeats = style.beatsPerBar;
  for (let bar = firstBar, line = 0; bar + 1 < score.bars.length; bar += 2, line++) {
    const syllables = lines[line % lines.length] as Syllable[];
    const beats = barBeats * 2 - 1;
    // Few syllables are sung on beats, many on halves. If they still do not fit, they are sung faster.
    const unit =
      syllables.length <= beats
        ? 1
        : syllables.length <= beats * 2
          ? 0.5
          : beats / syllables.length;
    let degree = 7 + random.below(3);
    for (const [index, syllable] of syllables.entries()) {
      const beat = index * unit;
      const inBar = bar + Math.floor(beat / barBeats);
      const chord = score.bars[Math.min(inBar, score.bars.length - 1)]?.chord ?? 0;
      const led = tuneDegree(score, inBar, beat % barBeats);
      degree = led ?? degree + random.pick([-1, 0, 1, 1, -1, 2]);
      if (Number.isInteger(beat)) degree = nearestChordTone(chord, degree);
      degree = Math.min(Math.max(degree, 3), 12);
      const last = index === syllables.length - 1;
      const held = last ? Math.min(beats + 0.6 - beat, 2.5) : unit * 0.98;
      notes.push({
        syllable,
        start: (bar * barBeats + beat) * score.secondsPerBeat,
        length: Math.max(0.12, held * score.secondsPerBeat),
        midi: noteOf(score.key, degree) - SUNG_BELOW_TUNE,
      });
    }
  }
  return notes;
}

function tuneDegree(score: Score, bar: number, beat: number): number | undefined {
  return score.bars[bar]?.tune.find(
    (step) => step.beat <= beat + 0.01 && beat < step.beat + step.beats - 0.01,
  )?.degree;
}
