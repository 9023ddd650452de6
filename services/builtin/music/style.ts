// Finds in a prompt which kind of music is asked for, and says how each kind is played.

import type { Random } from "../seed.ts";
import { words } from "../words.ts";
import type { PatchName } from "./patches.ts";
import type { ScaleName } from "./theory.ts";

/** The way in which a kind of music is played. */
export interface Style {
  readonly tempo: readonly [number, number];
  readonly beatsPerBar: 3 | 4;
  /** How late the second half of a beat comes, as a share of the beat beyond its middle. */
  readonly swing: number;
  /** Strokes on sixteenths of a bar: `x` hit, `o` soft hit, `.` none. */
  readonly drums: Readonly<Record<"kick" | "snare" | "hat", string>>;
  readonly players: Readonly<Record<"lead" | "comp" | "pad", PatchName>>;
  /** The way in which chords are struck: held, on the beats, or one note after another. */
  readonly comp: "held" | "beats" | "arpeggio" | "offbeat";
  readonly bass: "root" | "octaves" | "walking" | "drive";
  /** How much the drum lowers the other players, 0 to 1. */
  readonly duck: number;
  readonly reverb: number;
}

const POP: Style = {
  ...{ tempo: [100, 118], beatsPerBar: 4, swing: 0 },
  drums: { kick: "x.......x.x.....", snare: "....x.......x...", hat: "x.o.x.o.x.o.x.oo" },
  players: { lead: "lead", comp: "keys", pad: "strings" },
  ...{ comp: "beats", bass: "octaves", duck: 0.15, reverb: 0.22 },
};

const TECHNO: Style = {
  ...{ tempo: [120, 128], beatsPerBar: 4, swing: 0 },
  drums: { kick: "x...x...x...x...", snare: "....x.......x..o", hat: "..x...x...x...xo" },
  players: { lead: "pluck", comp: "saw", pad: "strings" },
  ...{ comp: "arpeggio", bass: "drive", duck: 0.55, reverb: 0.22 },
};

const LOFI: Style = {
  ...{ tempo: [74, 86], beatsPerBar: 4, swing: 0.14 },
  drums: { kick: "x.....o...x.....", snare: "....x.......x...", hat: "x.o.x.o.x.o.x.o." },
  players: { lead: "keys", comp: "keys", pad: "warm" },
  ...{ comp: "held", bass: "root", duck: 0.15, reverb: 0.28 },
};

const ROCK: Style = {
  ...{ tempo: [126, 144], beatsPerBar: 4, swing: 0 },
  drums: { kick: "x..x..x.x..x....", snare: "....x.......x...", hat: "x.x.x.x.x.x.x.x." },
  players: { lead: "saw", comp: "saw", pad: "organ" },
  ...{ comp: "beats", bass: "drive", duck: 0, reverb: 0.22 },
};

const AMBIENT: Style = {
  ...{ tempo: [64, 74], beatsPerBar: 4, swing: 0 },
  drums: { kick: "................", snare: "................", hat: "o.......o......." },
  players: { lead: "bell", comp: "pluck", pad: "warm" },
  ...{ comp: "arpeggio", bass: "root", duck: 0.15, reverb: 0.42 },
};

const JAZZ: Style = {
  ...{ tempo: [104, 124], beatsPerBar: 4, swing: 0.17 },
  drums: { kick: "x.......o.......", snare: "......o.......o.", hat: "x...x.o.x...x.o." },
  players: { lead: "flute", comp: "keys", pad: "warm" },
  ...{ comp: "offbeat", bass: "walking", duck: 0, reverb: 0.22 },
};

const WALTZ: Style = {
  ...{ tempo: [92, 112], beatsPerBar: 3, swing: 0 },
  drums: { kick: "x...........", snare: "....o...o...", hat: "....o...o..." },
  players: { lead: "flute", comp: "pluck", pad: "strings" },
  ...{ comp: "beats", bass: "root", duck: 0, reverb: 0.3 },
};

const ORCHESTRA: Style = {
  ...{ tempo: [84, 100], beatsPerBar: 4, swing: 0 },
  drums: { kick: "x.....x.x.......", snare: "............o.oo", hat: "................" },
  players: { lead: "flute", comp: "pluck", pad: "strings" },
  ...{ comp: "arpeggio", bass: "octaves", duck: 0, reverb: 0.36 },
};

const FOLK: Style = {
  ...{ tempo: [96, 112], beatsPerBar: 4, swing: 0 },
  drums: { kick: "x.......x.......", snare: "....o.......o...", hat: "o.o.x.o.o.o.x.o." },
  players: { lead: "flute", comp: "pluck", pad: "warm" },
  ...{ comp: "arpeggio", bass: "octaves", duck: 0, reverb: 0.22 },
};

const CHIPTUNE: Style = {
  ...{ tempo: [134, 150], beatsPerBar: 4, swing: 0 },
  drums: { kick: "x...x...x...x...", snare: "....x.......x...", hat: "x.x.x.x.x.x.x.x." },
  players: { lead: "square", comp: "square", pad: "organ" },
  ...{ comp: "arpeggio", bass: "drive", duck: 0, reverb: 0.1 },
};

/** The words that ask for a style. The first one that is found counts. */
const STYLES: readonly (readonly [RegExp, Style])[] = [
  [words("techno electr\\w* dance edm house trance synth\\w* club rave disco neon"), TECHNO],
  [words("lo-?fi chill\\w* study hip-?hop rap relax\\w* coffee rain\\w*"), LOFI],
  [words("rock metal punk guitar\\w* grunge energetic fast power\\w*"), ROCK],
  [
    words("ambient calm\\w* sleep\\w* meditat\\w* space dream\\w* peaceful ocean night fog snow"),
    AMBIENT,
  ],
  [words("jazz\\w* swing blues bossa saxophone lounge"), JAZZ],
  [words("waltz ballroom carousel fairy\\w* ballet"), WALTZ],
  [
    words("classical orchestra\\w* cinematic epic film hero\\w* battle adventure castle dragon"),
    ORCHESTRA,
  ],
  [words("folk acoustic country campfire banjo ukulele spring garden morning"), FOLK],
  [words("8-?bit chip\\w* game arcade pixel retro robot"), CHIPTUNE],
];

const DARK_WORDS = words(
  "sad\\w* melanchol\\w* dark\\w* lonely rain\\w* cry\\w* tear minor night goodbye lost winter fear battle ghost\\w* storm\\w*",
);
const BRIGHT_WORDS = words(
  "happy joy\\w* bright summer sun\\w* love\\w* major cheer\\w* party hope\\w* birthday spring smile\\w* morning dance",
);
const DARK_SCALES: readonly ScaleName[] = ["minor", "minor", "dorian"];
const BRIGHT_SCALES: readonly ScaleName[] = ["major", "major", "mixolydian", "lydian"];

/** The taste in the words: a style, and a bright or dark scale. */
export type Taste = {
  readonly style: Style;
  readonly scaleName: ScaleName;
  readonly dark: boolean;
  readonly tempo: number;
};

/** Reads title and description like a band leader. Where no word helps, chance decides. */
export function readTaste(words: string, random: Random): Taste {
  const text = words.toLowerCase();
  const named = STYLES.find(([pattern]) => pattern.test(text))?.[1];
  const style = named ?? random.pick([POP, ...STYLES.map(([, other]) => other)]);
  const dark = DARK_WORDS.test(text) || (!BRIGHT_WORDS.test(text) && random.next() < 0.4);
  return {
    style,
    dark,
    scaleName: random.pick(dark ? DARK_SCALES : BRIGHT_SCALES),
    tempo: Math.round(random.between(...style.tempo)),
  };
}
