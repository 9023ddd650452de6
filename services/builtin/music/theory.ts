// Scales and chords, of which pieces are composed.

/** Steps of a scale above its root, in semitones. */
type Scale = readonly number[];

export const SCALES = {
  major: [0, 2, 4, 5, 7, 9, 11],
  lydian: [0, 2, 4, 6, 7, 9, 11],
  mixolydian: [0, 2, 4, 5, 7, 9, 10],
  minor: [0, 2, 3, 5, 7, 8, 10],
  dorian: [0, 2, 3, 5, 7, 9, 10],
} as const satisfies Record<string, Scale>;

export type ScaleName = keyof typeof SCALES;

/** A key: a scale on a root, the root as a MIDI note (60 is middle C). */
export type Key = { readonly root: number; readonly scale: Scale };

/** Chords of a passage, one for each bar, as degrees of the scale (0 is the tonic). */
type Progression = readonly number[];

/** Progressions that seem settled in bright keys and in dark ones. */
export const BRIGHT_PROGRESSIONS: readonly Progression[] = [
  [0, 4, 5, 3],
  [0, 5, 3, 4],
  [3, 4, 0, 5],
  [0, 2, 3, 4],
  [0, 3, 5, 4],
  [5, 3, 0, 4],
];
export const DARK_PROGRESSIONS: readonly Progression[] = [
  [0, 5, 2, 6],
  [0, 3, 5, 4],
  [0, 6, 5, 6],
  [0, 2, 6, 3],
  [5, 6, 0, 0],
  [0, 5, 3, 6],
];

/** The MIDI note of a scale degree. Degrees above the seventh go on in the next octave. */
export function noteOf(key: Key, degree: number): number {
  const size = key.scale.length;
  const octave = Math.floor(degree / size);
  const step = key.scale[degree - octave * size] as number;
  return key.root + octave * 12 + step;
}

/** The degrees of a chord: every second note from its root up. */
export function chordDegrees(root: number, voices: number): number[] {
  return Array.from({ length: voices }, (_, index) => root + index * 2);
}

/** The degree of a chord nearest to another degree, in any octave. */
export function nearestChordTone(chordRoot: number, degree: number): number {
  const offsets = [0, 2, 4].flatMap((third) =>
    [-14, -7, 0, 7, 14].map((octave) => chordRoot + third + octave),
  );
  return offsets.reduce((best, tone) =>
    Math.abs(tone - degree) < Math.abs(best - degree) ? tone : best,
  );
}

/** Frequency of a MIDI note in Hz. */
export function frequencyOf(midi: number): number {
  return 440 * 2 ** ((midi - 69) / 12);
}
