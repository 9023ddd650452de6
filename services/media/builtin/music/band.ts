import type { Random } from "../seed.ts";
import { createDrums, type Drums } from "./drums.ts";
import type { Step } from "./melody.ts";
import { createInstrument, type Instrument, type Mix } from "./player.ts";
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

/** The players of a score. */
export class Band {
  readonly #score: Score;
  readonly #withTune: boolean;
  readonly #drums: Drums;
  readonly #lead: Instrument;
  readonly #comp: Instrument;
  readonly #pad: Instrument;
  readonly #bass: Instrument;
  readonly #feel: Random;
  readonly #kicks: number[] = [];

  /** The players that the style asks for. `withTune` false leaves the tune to a singer. */
  constructor(score: Score, mix: Mix, withTune: boolean, random: Random) {
    const { style } = score.taste;
    this.#score = score;
    this.#withTune = withTune;
    this.#drums = createDrums(mix, random.below(2 ** 30));
    this.#lead = createInstrument(style.lead, mix);
    this.#comp = createInstrument(style.comp, mix);
    this.#pad = createInstrument(style.pad, mix);
    this.#bass = createInstrument(style.bass, mix);
    this.#feel = random.fork("feel");
  }

  /** Seconds at which the kick has fallen so far, in order. */
  get kicks(): readonly number[] {
    return this.#kicks;
  }

  /** Lets all players play one bar. */
  playBar(index: number): void {
    const bar = this.#score.bars[index];
    if (bar === undefined) return;
    if (bar.drums) this.#playDrums(index, bar);
    if (bar.bass) this.#playBass(index, bar);
    this.#playPad(index, bar);
    if (bar.comp) this.#playComp(index, bar);
    if (this.#withTune) this.#playTune(index, bar);
  }

  #timeOf(bar: number, beat: number): number {
    const { secondsPerBeat, taste } = this.#score;
    const late = Math.abs((beat % 1) - 0.5) < 0.01 ? taste.style.swing : 0;
    return (bar * taste.style.beatsPerBar + beat + late) * secondsPerBeat;
  }

  #playDrums(index: number, bar: Bar): void {
    const { style } = this.#score.taste;
    if (bar.opening) this.#drums.strike("crash", this.#timeOf(index, 0), 0.5 * bar.energy);
    const strikes = [
      ["kick", style.kick, 0.95],
      ["snare", style.snare, 0.8],
      ["hat", style.hat, 0.6],
    ] as const;
    for (const [name, pattern, loudness] of strikes) {
      for (const [sixteenth, mark] of [...pattern].entries()) {
        if (mark === ".") continue;
        const start = this.#timeOf(index, sixteenth / 4);
        const touch = (mark === "x" ? 1 : 0.5) * this.#feel.between(0.88, 1.05) * bar.energy;
        this.#drums.strike(name, start, loudness * touch);
        if (name === "kick") this.#kicks.push(start);
      }
    }
  }

  #playBass(index: number, bar: Bar): void {
    for (const { beat, beats, degree } of bassLine(this.#score.taste.style, bar.chord)) {
      const midi = noteOf(this.#score.key, degree) - 24;
      const start = this.#timeOf(index, beat);
      const length = beats * this.#score.secondsPerBeat * 0.92;
      this.#bass.play({ start, length, midi, loudness: 0.9 * bar.energy, place: 0 });
    }
  }

  #playPad(index: number, bar: Bar): void {
    const start = this.#timeOf(index, 0);
    const length = this.#timeOf(index + 1, 0) - start;
    for (const [voice, degree] of chordDegrees(bar.chord, 4).entries()) {
      const midi = noteOf(this.#score.key, degree) - (voice > 1 ? 12 : 0);
      const place = (voice - 1.5) * 0.4;
      this.#pad.play({ start, length, midi, loudness: 0.62 * bar.energy, place });
    }
  }

  #playComp(index: number, bar: Bar): void {
    for (const { beat, beats, degree } of compLine(this.#score.taste.style, bar.chord)) {
      this.#comp.play({
        start: this.#timeOf(index, beat),
        length: beats * this.#score.secondsPerBeat * 0.9,
        midi: noteOf(this.#score.key, degree),
        loudness: this.#feel.between(0.5, 0.66) * bar.energy,
        place: ((degree % 3) - 1) * 0.45,
      });
    }
  }

  #playTune(index: number, bar: Bar): void {
    for (const { beat, beats, degree } of bar.tune) {
      this.#lead.play({
        start: this.#timeOf(index, beat),
        length: beats * this.#score.secondsPerBeat * 0.94,
        midi: noteOf(this.#score.key, degree),
        loudness: this.#feel.between(0.82, 0.98) * bar.energy,
        place: -0.08,
      });
    }
  }
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
