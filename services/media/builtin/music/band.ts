import type { Random } from "../seed.ts";
import { createDrums } from "./drums.ts";
import type { Step } from "./melody.ts";
import { createInstrument, type Mix } from "./player.ts";
import type { Style, Taste } from "./style.ts";
import { chordDegrees, type Key, noteOf } from "./theory.ts";

/** One bar of a piece: its chord, who plays, and the tune. */
export type Bar = {
  readonly chord: number;
  readonly drums: boolean;
  readonly bass: boolean;
  readonly comp: boolean;
  readonly tune: readonly Step[];
  /** Loudness of the whole bar, about 1. */
  readonly energy: number;
  /** The first bar of a part: a crash marks it. */
  readonly opening: boolean;
};

/** A piece ready to be played. */
export type Score = {
  readonly taste: Taste;
  readonly key: Key;
  readonly bars: readonly Bar[];
  readonly secondsPerBeat: number;
};

/** The players of a score; `playBar` lets all of them play one bar. */
export type Band = {
  readonly playBar: (index: number) => void;
  /** Seconds at which the drum's kick falls, in order. */
  readonly kicks: readonly number[];
};

/** Creates the players. `withTune` false leaves the tune to a singer. */
export function createBand(score: Score, mix: Mix, withTune: boolean, random: Random): Band {
  const { style } = score.taste;
  const barSeconds = score.secondsPerBeat * style.beatsPerBar;
  const drums = createDrums(mix, random.below(2 ** 30));
  const lead = createInstrument(style.lead, mix);
  const comp = createInstrument(style.comp, mix);
  const pad = createInstrument(style.pad, mix);
  const bass = createInstrument(style.bass, mix);
  const feel = random.fork("feel");
  const kicks: number[] = [];

  const timeOf = (bar: number, beat: number): number => {
    const half = Math.abs((beat % 1) - 0.5) < 0.01 ? style.swing : 0;
    return bar * barSeconds + (beat + half) * score.secondsPerBeat;
  };
  const playDrums = (index: number, bar: Bar): void => {
    if (bar.opening) drums.strike("crash", timeOf(index, 0), 0.5 * bar.energy);
    const strikes = [
      ["kick", style.kick, 0.95],
      ["snare", style.snare, 0.8],
      ["hat", style.hat, 0.6],
    ] as const;
    for (const [name, pattern, loudness] of strikes) {
      [...pattern].forEach((mark, sixteenth) => {
        if (mark === ".") return;
        const start = timeOf(index, sixteenth / 4);
        const touch = (mark === "x" ? 1 : 0.5) * feel.between(0.88, 1.05) * bar.energy;
        drums.strike(name, start, loudness * touch);
        if (name === "kick") kicks.push(start);
      });
    }
  };
  const playBass = (index: number, bar: Bar): void => {
    for (const { beat, beats, degree } of bassLine(style, bar.chord)) {
      const midi = noteOf(score.key, degree) - 24;
      const start = timeOf(index, beat);
      const length = beats * score.secondsPerBeat * 0.92;
      bass.play({ start, length, midi, loudness: 0.9 * bar.energy, place: 0 });
    }
  };
  const playChords = (index: number, bar: Bar): void => {
    const start = timeOf(index, 0);
    chordDegrees(bar.chord, 4).forEach((degree, voice) => {
      const midi = noteOf(score.key, degree) - (voice > 1 ? 12 : 0);
      const place = (voice - 1.5) * 0.4;
      pad.play({ start, length: barSeconds, midi, loudness: 0.62 * bar.energy, place });
    });
    if (!bar.comp) return;
    for (const { beat, beats, degree } of compLine(style, bar.chord)) {
      comp.play({
        start: timeOf(index, beat),
        length: beats * score.secondsPerBeat * 0.9,
        midi: noteOf(score.key, degree),
        loudness: feel.between(0.5, 0.66) * bar.energy,
        place: ((degree % 3) - 1) * 0.45,
      });
    }
  };
  const playTune = (index: number, bar: Bar): void => {
    for (const { beat, beats, degree } of bar.tune) {
      const midi = noteOf(score.key, degree);
      const length = beats * score.secondsPerBeat * 0.94;
      const loudness = feel.between(0.82, 0.98) * bar.energy;
      lead.play({ start: timeOf(index, beat), length, midi, loudness, place: -0.08 });
    }
  };
  return {
    kicks,
    playBar: (index) => {
      const bar = score.bars[index];
      if (bar === undefined) return;
      if (bar.drums) playDrums(index, bar);
      if (bar.bass) playBass(index, bar);
      playChords(index, bar);
      if (withTune) playTune(index, bar);
    },
  };
}

function bassLine(style: Style, chord: number): Step[] {
  const beats = style.beatsPerBar;
  const root = chord > 4 ? chord - 7 : chord;
  if (style.bassPattern === "root") return [{ beat: 0, beats, degree: root }];
  if (style.bassPattern === "walking") {
    return [0, 2, 4, 5].slice(0, beats).map((up, beat) => ({ beat, beats: 1, degree: root + up }));
  }
  if (style.bassPattern === "drive") {
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
  if (style.compPattern === "held") return [...all(0, 2.4), ...all(2.5, beats - 2.5)];
  if (style.compPattern === "offbeat") return [...all(0.5, 0.5), ...all(beats - 1.5, 1)];
  if (style.compPattern === "beats") {
    return Array.from({ length: beats }, (_, beat) => all(beat, 0.9)).flat();
  }
  const figure = [0, 1, 2, 1, 3, 2, 1, 2];
  return Array.from({ length: beats * 2 }, (_, index) => ({
    beat: index / 2,
    beats: 0.5,
    degree: chord + (figure[index % figure.length] as number) * 2,
  }));
}
