// Lists the phonemes, and how the mouth makes each. `tract.ts` speaks them.

/** How a phoneme is made. Frequencies are in Hz, lengths in milliseconds at normal pace. */
export type Phoneme = {
  /** The three resonances of the mouth during it, and where they glide to. */
  readonly formants: readonly [number, number, number];
  readonly glideTo?: readonly [number, number, number];
  readonly lengthMs: number;
  /** Loudness of the voice, of breath through the mouth, and of hissing, 0 to 1. */
  readonly voice: number;
  readonly breath?: number;
  readonly hiss?: number;
  /** Frequency and width of the hissing. */
  readonly hissHz?: number;
  readonly hissWidthHz?: number;
  /** A closed mouth before it, and a burst at its opening. */
  readonly closureMs?: number;
  readonly vowel?: boolean;
};

type Formants = readonly [number, number, number];

const IY: Formants = [270, 2290, 3010];
const UW: Formants = [300, 870, 2240];
const ALVEOLAR: Formants = [350, 1750, 2600];
const LABIAL: Formants = [320, 950, 2300];
const VELAR: Formants = [320, 2100, 2500];

function vowel(formants: Formants, lengthMs: number, glideTo?: Formants): Phoneme {
  const base = { formants, lengthMs, voice: 1, vowel: true } as const;
  return glideTo === undefined ? base : { ...base, glideTo };
}

function stop(formants: Formants, hissHz: number, voiced: boolean): Phoneme {
  return {
    formants,
    lengthMs: voiced ? 28 : 42,
    closureMs: voiced ? 45 : 60,
    voice: voiced ? 0.5 : 0,
    breath: voiced ? 0 : 0.25,
    hiss: voiced ? 0.35 : 0.6,
    hissHz,
    hissWidthHz: hissHz * 0.5,
  };
}

function fricative(formants: Formants, hissHz: number, hiss: number, voice: number): Phoneme {
  const hissWidthHz = hissHz * 0.35;
  return { formants, lengthMs: voice > 0 ? 70 : 95, voice, hiss, hissHz, hissWidthHz };
}

function sonorant(formants: Formants, lengthMs: number, voice: number): Phoneme {
  return { formants, lengthMs, voice };
}

/** The phonemes by name (after the ARPAbet). */
const PHONEMES = {
  iy: vowel(IY, 120),
  ih: vowel([390, 1990, 2550], 85),
  eh: vowel([530, 1840, 2480], 100),
  ae: vowel([660, 1720, 2410], 125),
  ah: vowel([640, 1190, 2390], 95),
  aa: vowel([730, 1090, 2440], 130),
  ao: vowel([570, 840, 2410], 130),
  uh: vowel([440, 1020, 2240], 90),
  uw: vowel(UW, 125),
  er: vowel([490, 1350, 1690], 120),
  ax: vowel([500, 1480, 2500], 60),
  oe: vowel([400, 1500, 2200], 115),
  ey: vowel([500, 1900, 2550], 140, [320, 2200, 2800]),
  ay: vowel([730, 1150, 2440], 165, [350, 2100, 2700]),
  oy: vowel([550, 860, 2410], 170, [350, 2050, 2700]),
  aw: vowel([730, 1150, 2440], 165, [380, 900, 2300]),
  ow: vowel([540, 950, 2400], 145, [360, 850, 2250]),
  m: sonorant([270, 950, 2200], 75, 0.5),
  n: sonorant([270, 1650, 2600], 70, 0.5),
  ng: sonorant([270, 2150, 2700], 80, 0.5),
  l: sonorant([360, 1250, 2750], 65, 0.7),
  r: sonorant([320, 1100, 1500], 70, 0.75),
  w: sonorant([300, 640, 2200], 65, 0.75),
  y: sonorant([270, 2150, 3000], 55, 0.75),
  h: { formants: [500, 1500, 2500], lengthMs: 60, voice: 0, breath: 0.5 },
  f: fricative(LABIAL, 5200, 0.28, 0),
  v: fricative(LABIAL, 4800, 0.14, 0.5),
  th: fricative(ALVEOLAR, 6200, 0.25, 0),
  dh: fricative(ALVEOLAR, 5600, 0.1, 0.55),
  s: fricative(ALVEOLAR, 6300, 0.62, 0),
  z: fricative(ALVEOLAR, 6000, 0.36, 0.45),
  sh: fricative([350, 1900, 2500], 3100, 0.65, 0),
  zh: fricative([350, 1900, 2500], 2900, 0.34, 0.45),
  p: stop(LABIAL, 900, false),
  b: stop(LABIAL, 700, true),
  t: stop(ALVEOLAR, 4300, false),
  d: stop(ALVEOLAR, 3800, true),
  k: stop(VELAR, 2100, false),
  g: stop(VELAR, 1900, true),
} as const satisfies Record<string, Phoneme>;

export type PhonemeName = keyof typeof PHONEMES;

/** The phoneme of a name, with the optional parts visible to the type checker. */
export function phonemeOf(name: PhonemeName): Phoneme {
  return PHONEMES[name];
}
