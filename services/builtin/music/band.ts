// Plays a whole score bar by bar: chords, bass, tune, drums. `compose.ts` writes the score, and `player.ts` has the
// instruments.

import type { Random } from "../seed.ts";
import { createDrums } from "./drums.ts";
import type { Step } from "./melody.ts";
import { createInstrument, type Mix } from "./player.ts";
import type { Style, Taste } from "./style.ts";
import { chordDegrees, type Key, noteOf } from "./theory.ts";

/** One bar of a piece: its chord, its players, and the tune. */
export interface Bar {
  readonly chord: number;
  readonly drums: boolean;
  readonly bass: boolean;
  readonly comp: boolean;
  readonly tune: readonly Step[];
  /** Loudness of the whole bar, about 1. */
  readonly energy: number;
  /** The first bar of a part, which a crash marks. */
  readonly opening: boolean;
}

/** A piece ready to be played. */
export interface Score {
  readonly taste: Taste;
  readonly key: Key;
  readonly bars: readonly Bar[];
  readonly secondsPerBeat: number;
}

/**
 * Plays a score into a mix, with or without its tune, and calls `beforeBar` before each bar. Answers the times of the kick's strokes in
 * seconds.
 */
export function playScore(
  score: Score,
  mix: Mix,
  withTune: boolean,
  random: Random,
  beforeBar: (index: number) => void,
): number[] {
  const { key, bars, secondsPerBeat } = score;
  const { style } = score.taste;
  const strike = createDrums(mix, random.below(2 ** 30));
  const lead = createInstrument(style.players.lead, mix);
  const comp = createInstrument(style.players.comp, mix);
  const pad = createInstrument(style.players.pad, mix);
  const bass = createInstrument("bass", mix);
  const feel = random.fork("feel");
  const kicks: number[] = [];

  const timeOf = (bar: number, beat: number): number => {
    const late = Math.abs((beat % 1) - 0.5) < 0.01 ? style.swing : 0;
    return (bar * style.beatsPerBar + beat + late) * secondsPerBeat;
  };
  const playDrums = (index: number, { opening, energy }: Bar) => {
    if (opening) strike("crash", timeOf(index, 0), 0.5 * energy);
    for (const [name, loudness] of [
      ["kick", 0.95],
      ["snare", 0.8],
      ["hat", 0.6],
    ] as const) {
      for (const [sixteenth, mark] of [...style.drums[name]].entries()) {
        if (mark === ".") continue;
        const start = timeOf(index, sixteenth / 4);
        const touch = (mark === "x" ? 1 : 0.5) * feel.between(0.88, 1.05) * energy;
        strike(name, start, loudness * touch);
        if (name === "kick") kicks.push(start);
      }
    }
  };
  const playPad = (index: number, { chord, energy }: Bar) => {
    const start = timeOf(index, 0);
    const length = timeOf(index + 1, 0) - start;
    for (const [voice, degree] of chordDegrees(chord, 4).entries()) {
      const midi = noteOf(key, degree) - (voice > 1 ? 12 : 0);
      pad({ start, length, midi, loudness: 0.62 * energy, place: (voice - 1.5) * 0.4 });
    }
  };

  for (const [index, bar] of bars.entries()) {
    beforeBar(index);
    const { chord, energy } = bar;
    if (bar.drums) playDrums(index, bar);
    for (const { beat, beats, degree } of bar.bass ? bassLine(style, chord) : []) {
      const midi = noteOf(key, degree) - 24;
      const length = beats * secondsPerBeat * 0.92;
      bass({ start: timeOf(index, beat), length, midi, loudness: 0.9 * energy, place: 0 });
    }
    playPad(index, bar);
    for (const { beat, beats, degree } of bar.comp ? compLine(style, chord) : []) {
      const length = beats * secondsPerBeat * 0.9;
      const loudness = feel.between(0.5, 0.66) * energy;
      const place = ((degree % 3) - 1) * 0.45;
      comp({ start: timeOf(index, beat), length, midi: noteOf(key, degree), loudness, place });
    }
    for (const { beat, beats, degree } of withTune ? bar.tune : []) {
      const length = beats * secondsPerBeat * 0.94;
      const loudness = feel.between(0.82, 0.98) * energy;
      lead({
        ...{
          start: timeOf(index, beat),
          length,
          midi: noteOf(key, degree),
          loudness,
          place: -0.08,
        },
      });
    }
  }
  return kicks;
}

function bassLine(style: Style, chord: number): Step[] {
  const beats = style.beatsPerBar;
  const root = chord > 4 ? chord - 7 : chord;
  if (style.bass === "root") return [{ beat: 0, beats, degree: root }];
  if (style.bass === "walking") {
    return [0, 2, 4, 5].slice(0, beats).map((up, beat) => ({ beat, beats: 1, degree: root + up }));
  }
  if (style.bass === "drive") {
    return Array.from({ length: beats * 2 }, (_, index) => ({
      beat: index / 2,
      beats: 0.5,
      degree: index % 4 === 3 ? root + 7 : root,
    }));
  }
  return [
    { beat: 0, beats: 1.5, degree: root },
    { beat: 1.5, beats: 0.5, degree: root },
    { beat: 2, beats: beats - 2, degree: root + 4 },
  ];
}

function compLine(style: Style, chord: number): Step[] {
  const beats = style.beatsPerBar;
  const tones = chordDegrees(chord, 3);
  const all = (beat: number, length: number): Step[] =>
    tones.map((degree) => ({ beat, beats: length, degree }));
  if (style.comp === "held") return [...all(0, 2.4), ...all(2.5, beats - 2.5)];
  if (style.comp === "offbeat") return [...all(0.5, 0.5), ...all(beats - 1.5, 1)];
  if (style.comp === "beats") {
    return Array.from({ length: beats }, (_, beat) => all(beat, 0.9)).flat();
  }
  const figure = [0, 1, 2, 1, 3, 2, 1, 2];
  return Array.from({ length: beats * 2 }, (_, index) => ({
    beat: index / 2,
    beats: 0.5,
    degree: chord + (figure[index % figure.length] as number) * 2,
  }));
}
