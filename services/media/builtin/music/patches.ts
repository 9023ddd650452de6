/** A sound of an instrument: what its waves look like and how a note begins and ends. */
export type Patch = {
  /** Strength of each partial at the start of a note, and after it has decayed. */
  readonly bright: readonly number[];
  readonly dark: readonly number[];
  /** How fast bright turns to dark, in seconds. */
  readonly mellowSeconds: number;
  readonly attackSeconds: number;
  /** Time in which a held note sinks to `sustain`. */
  readonly decaySeconds: number;
  readonly sustain: number;
  readonly releaseSeconds: number;
  /** Copies of the wave, out of tune by so many cents. */
  readonly detuneCents: readonly number[];
  readonly vibrato: number;
  /** Share of the note that goes into the hall. */
  readonly wet: number;
  readonly gain: number;
};

/** Partials that fall off as a power of their number. */
function falling(count: number, power: number, oddOnly = false): number[] {
  return Array.from({ length: count }, (_, index) =>
    oddOnly && index % 2 === 1 ? 0 : 1 / (index + 1) ** power,
  );
}

const HELD = { sustain: 0.8, decaySeconds: 0.6, vibrato: 0 } as const;

export const PATCHES = {
  strings: {
    ...HELD,
    bright: falling(14, 1.25),
    dark: falling(8, 1.7),
    mellowSeconds: 1.2,
    attackSeconds: 0.28,
    releaseSeconds: 0.7,
    detuneCents: [-9, 0, 8],
    wet: 0.6,
    gain: 0.14,
  },
  warm: {
    ...HELD,
    bright: falling(6, 1.7),
    dark: falling(4, 2.2),
    mellowSeconds: 1.5,
    attackSeconds: 0.5,
    releaseSeconds: 1.1,
    detuneCents: [-6, 5],
    wet: 0.7,
    gain: 0.24,
  },
  organ: {
    ...HELD,
    bright: [1, 0.7, 0.4, 0.4, 0, 0.2, 0, 0.2],
    dark: [1, 0.6, 0.3, 0.3],
    mellowSeconds: 1,
    attackSeconds: 0.03,
    releaseSeconds: 0.15,
    detuneCents: [-3, 3],
    wet: 0.3,
    gain: 0.12,
  },
  keys: {
    bright: [1, 0.45, 0.12, 0.28, 0.05, 0.1],
    dark: [1, 0.16, 0.03],
    mellowSeconds: 0.35,
    attackSeconds: 0.004,
    decaySeconds: 1.3,
    sustain: 0.12,
    releaseSeconds: 0.25,
    detuneCents: [-2, 2],
    vibrato: 0,
    wet: 0.3,
    gain: 0.26,
  },
  pluck: {
    bright: falling(16, 0.9),
    dark: falling(3, 2),
    mellowSeconds: 0.12,
    attackSeconds: 0.002,
    decaySeconds: 0.55,
    sustain: 0.03,
    releaseSeconds: 0.2,
    detuneCents: [-4, 4],
    vibrato: 0,
    wet: 0.4,
    gain: 0.24,
  },
  saw: {
    bright: falling(16, 1),
    dark: falling(10, 1.3),
    mellowSeconds: 0.3,
    attackSeconds: 0.008,
    decaySeconds: 0.5,
    sustain: 0.5,
    releaseSeconds: 0.12,
    detuneCents: [-11, -4, 5, 10],
    vibrato: 0.1,
    wet: 0.3,
    gain: 0.12,
  },
  square: {
    bright: falling(15, 1, true),
    dark: falling(11, 1.1, true),
    mellowSeconds: 0.4,
    attackSeconds: 0.003,
    decaySeconds: 0.3,
    sustain: 0.6,
    releaseSeconds: 0.05,
    detuneCents: [0],
    vibrato: 0.15,
    wet: 0.12,
    gain: 0.2,
  },
  lead: {
    bright: falling(12, 1.2),
    dark: falling(8, 1.5),
    mellowSeconds: 0.5,
    attackSeconds: 0.02,
    decaySeconds: 0.4,
    sustain: 0.7,
    releaseSeconds: 0.18,
    detuneCents: [-5, 5],
    vibrato: 0.25,
    wet: 0.4,
    gain: 0.24,
  },
  flute: {
    bright: [1, 0.42, 0.18, 0.06, 0.03],
    dark: [1, 0.22, 0.08],
    mellowSeconds: 0.4,
    attackSeconds: 0.06,
    decaySeconds: 0.5,
    sustain: 0.85,
    releaseSeconds: 0.15,
    detuneCents: [0, 3],
    vibrato: 0.3,
    wet: 0.5,
    gain: 0.32,
  },
  bell: {
    bright: [1, 0, 0.35, 0.5, 0, 0.25, 0, 0, 0.16],
    dark: [1, 0, 0.1, 0.12],
    mellowSeconds: 0.5,
    attackSeconds: 0.003,
    decaySeconds: 2.2,
    sustain: 0.02,
    releaseSeconds: 1.2,
    detuneCents: [-2, 2],
    vibrato: 0,
    wet: 0.7,
    gain: 0.26,
  },
  bass: {
    bright: falling(8, 1.3),
    dark: [1, 0.4, 0.12],
    mellowSeconds: 0.18,
    attackSeconds: 0.006,
    decaySeconds: 0.5,
    sustain: 0.6,
    releaseSeconds: 0.08,
    detuneCents: [0],
    vibrato: 0,
    wet: 0.04,
    gain: 0.3,
  },
} as const satisfies Record<string, Patch>;

export type PatchName = keyof typeof PATCHES;

/** The patch of a name. */
export function patchOf(name: PatchName): Patch {
  return PATCHES[name];
}
