// Lists the instruments with the tone of each. `player.ts` plays them.

/** The tone of an instrument: the form of its waves, and the beginning and end of a note. */
export interface Patch {
  /** Strength of each partial at the start of a note, and after it has mellowed within a number of seconds. */
  readonly wave: {
    readonly bright: readonly number[];
    readonly dark: readonly number[];
    readonly mellow: number;
  };
  /** In seconds. A held note sinks to `sustain` within `decay`. */
  readonly note: {
    readonly attack: number;
    readonly decay: number;
    readonly sustain: number;
    readonly release: number;
  };
  /** Copies of the wave, each out of tune by a number of cents, and how far each sways. */
  readonly detuneCents: readonly number[];
  readonly vibrato: number;
  /** Share of the note that is sent into the hall. */
  readonly wet: number;
  readonly gain: number;
}

/** Partials that fall off as a power of their number. */
function falling(count: number, power: number): number[] {
  return Array.from({ length: count }, (_, index) => 1 / (index + 1) ** power);
}

/** The same without every second one. */
function odd(count: number, power: number): number[] {
  return falling(count, power).map((strength, index) => (index % 2 === 1 ? 0 : strength));
}

export const patches = {
  strings: {
    wave: { bright: falling(14, 1.25), dark: falling(8, 1.7), mellow: 1.2 },
    note: { attack: 0.28, decay: 0.6, sustain: 0.8, release: 0.7 },
    ...{ detuneCents: [-9, 0, 8], vibrato: 0, wet: 0.6, gain: 0.14 },
  },
  warm: {
    wave: { bright: falling(6, 1.7), dark: falling(4, 2.2), mellow: 1.5 },
    note: { attack: 0.5, decay: 0.6, sustain: 0.8, release: 1.1 },
    ...{ detuneCents: [-6, 5], vibrato: 0, wet: 0.7, gain: 0.24 },
  },
  organ: {
    wave: { bright: [1, 0.7, 0.4, 0.4, 0, 0.2, 0, 0.2], dark: [1, 0.6, 0.3, 0.3], mellow: 1 },
    note: { attack: 0.03, decay: 0.6, sustain: 0.8, release: 0.15 },
    ...{ detuneCents: [-3, 3], vibrato: 0, wet: 0.3, gain: 0.12 },
  },
  keys: {
    wave: { bright: [1, 0.45, 0.12, 0.28, 0.05, 0.1], dark: [1, 0.16, 0.03], mellow: 0.35 },
    note: { attack: 0.004, decay: 1.3, sustain: 0.12, release: 0.25 },
    ...{ detuneCents: [-2, 2], vibrato: 0, wet: 0.3, gain: 0.26 },
  },
  pluck: {
    wave: { bright: falling(16, 0.9), dark: falling(3, 2), mellow: 0.12 },
    note: { attack: 0.002, decay: 0.55, sustain: 0.03, release: 0.2 },
    ...{ detuneCents: [-4, 4], vibrato: 0, wet: 0.4, gain: 0.24 },
  },
  saw: {
    wave: { bright: falling(16, 1), dark: falling(10, 1.3), mellow: 0.3 },
    note: { attack: 0.008, decay: 0.5, sustain: 0.5, release: 0.12 },
    ...{ detuneCents: [-11, -4, 5, 10], vibrato: 0.1, wet: 0.3, gain: 0.12 },
  },
  square: {
    wave: { bright: odd(15, 1), dark: odd(11, 1.1), mellow: 0.4 },
    note: { attack: 0.003, decay: 0.3, sustain: 0.6, release: 0.05 },
    ...{ detuneCents: [0], vibrato: 0.15, wet: 0.12, gain: 0.2 },
  },
  lead: {
    wave: { bright: falling(12, 1.2), dark: falling(8, 1.5), mellow: 0.5 },
    note: { attack: 0.02, decay: 0.4, sustain: 0.7, release: 0.18 },
    ...{ detuneCents: [-5, 5], vibrato: 0.25, wet: 0.4, gain: 0.24 },
  },
  flute: {
    wave: { bright: [1, 0.42, 0.18, 0.06, 0.03], dark: [1, 0.22, 0.08], mellow: 0.4 },
    note: { attack: 0.06, decay: 0.5, sustain: 0.85, release: 0.15 },
    ...{ detuneCents: [0, 3], vibrato: 0.3, wet: 0.5, gain: 0.32 },
  },
  bell: {
    wave: { bright: [1, 0, 0.35, 0.5, 0, 0.25, 0, 0, 0.16], dark: [1, 0, 0.1, 0.12], mellow: 0.5 },
    note: { attack: 0.003, decay: 2.2, sustain: 0.02, release: 1.2 },
    ...{ detuneCents: [-2, 2], vibrato: 0, wet: 0.7, gain: 0.26 },
  },
  bass: {
    wave: { bright: falling(8, 1.3), dark: [1, 0.4, 0.12], mellow: 0.18 },
    note: { attack: 0.006, decay: 0.5, sustain: 0.6, release: 0.08 },
    ...{ detuneCents: [0], vibrato: 0, wet: 0.04, gain: 0.3 },
  },
} satisfies Record<string, Patch>;

export type PatchName = keyof typeof patches;
