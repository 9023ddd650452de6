// Lists the voices, and how each of them speaks. Speech and singers use them.

import { createRandom } from "../seed.ts";

/** The differences between speakers. */
export type Voice = {
  /** Mean pitch in Hz. */
  readonly pitchHz: number;
  /** How far the pitch moves, as a share of it. */
  readonly melody: number;
  /** Length of the throat: below 1 longer and darker, above 1 shorter and brighter. */
  readonly size: number;
  /** Breath in the voice, 0 to 1. */
  readonly breath: number;
  /** Unevenness of the pitch, as a share of it. */
  readonly roughness: number;
  /** Pace of speech as a factor. */
  readonly pace: number;
};

const KNOWN: Readonly<Record<string, Voice>> = {
  alloy: { pitchHz: 150, melody: 0.16, size: 1.04, breath: 0.1, roughness: 0.006, pace: 1 },
  ash: { pitchHz: 112, melody: 0.14, size: 0.96, breath: 0.14, roughness: 0.012, pace: 0.98 },
  ballad: { pitchHz: 128, melody: 0.24, size: 0.98, breath: 0.16, roughness: 0.006, pace: 0.9 },
  coral: { pitchHz: 205, melody: 0.22, size: 1.14, breath: 0.1, roughness: 0.005, pace: 1.04 },
  echo: { pitchHz: 105, melody: 0.12, size: 0.94, breath: 0.08, roughness: 0.008, pace: 0.98 },
  fable: { pitchHz: 138, melody: 0.26, size: 1.02, breath: 0.12, roughness: 0.007, pace: 1.05 },
  nova: { pitchHz: 214, melody: 0.2, size: 1.16, breath: 0.09, roughness: 0.004, pace: 1.08 },
  onyx: { pitchHz: 86, melody: 0.12, size: 0.88, breath: 0.1, roughness: 0.014, pace: 0.92 },
  sage: { pitchHz: 188, melody: 0.15, size: 1.1, breath: 0.14, roughness: 0.006, pace: 0.96 },
  shimmer: { pitchHz: 226, melody: 0.18, size: 1.18, breath: 0.2, roughness: 0.005, pace: 1 },
  verse: { pitchHz: 122, melody: 0.2, size: 1, breath: 0.1, roughness: 0.008, pace: 1.02 },
};

/** The speaker of that name. Any unknown name gets a voice of its own. */
export function voiceNamed(name: string): Voice {
  const lower = name.toLowerCase();
  const known = Object.hasOwn(KNOWN, lower) ? KNOWN[lower] : undefined;
  if (known !== undefined) return known;
  const random = createRandom(`voice\u0000${name}`);
  const high = random.next();
  return {
    pitchHz: 90 * 2.6 ** high,
    melody: random.between(0.12, 0.26),
    size: 0.88 + 0.28 * high + random.between(-0.04, 0.04),
    breath: random.between(0.06, 0.22),
    roughness: random.between(0.004, 0.014),
    pace: random.between(0.92, 1.1),
  };
}
