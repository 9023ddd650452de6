import type { Random } from "../seed.ts";
import type { PatchName } from "./patches.ts";
import type { ScaleName } from "./theory.ts";

/** How a kind of music is played. */
export type Style = {
  readonly tempo: readonly [number, number];
  readonly beatsPerBar: 3 | 4;
  /** How late the second half of a beat comes, as a share of the beat beyond its middle. */
  readonly swing: number;
  /** Strokes on sixteenths of a bar: `x` hit, `o` soft hit, `.` nothing. */
  readonly kick: string;
  readonly snare: string;
  readonly hat: string;
  readonly lead: PatchName;
  readonly comp: PatchName;
  readonly pad: PatchName;
  readonly bass: PatchName;
  /** How chords are struck: held, on the beats, or one note after another. */
  readonly compPattern: "held" | "beats" | "arpeggio" | "offbeat";
  readonly bassPattern: "root" | "octaves" | "walking" | "drive";
  /** How much the drum ducks the other players, 0 to 1. */
  readonly duck: number;
  readonly reverb: number;
};

const POP: Style = {
  tempo: [100, 118],
  beatsPerBar: 4,
  swing: 0,
  kick: "x.......x.x.....",
  snare: "....x.......x...",
  hat: "x.o.x.o.x.o.x.oo",
  lead: "lead",
  comp: "keys",
  pad: "strings",
  bass: "bass",
  compPattern: "beats",
  bassPattern: "octaves",
  duck: 0.15,
  reverb: 0.22,
};

const STYLES: readonly (readonly [RegExp, Style])[] = [
  [
    /\b(techno|electr\w*|dance|edm|house|trance|synth\w*|club|rave|disco|neon)\b/,
    {
      ...POP,
      tempo: [120, 128],
      kick: "x...x...x...x...",
      snare: "....x.......x..o",
      hat: "..x...x...x...xo",
      lead: "pluck",
      comp: "saw",
      pad: "strings",
      compPattern: "arpeggio",
      bassPattern: "drive",
      duck: 0.55,
    },
  ],
  [
    /\b(lo-?fi|chill\w*|study|hip-?hop|rap|relax\w*|coffee|rain\w*)\b/,
    {
      ...POP,
      tempo: [74, 86],
      swing: 0.14,
      kick: "x.....o...x.....",
      snare: "....x.......x...",
      hat: "x.o.x.o.x.o.x.o.",
      lead: "keys",
      comp: "keys",
      pad: "warm",
      compPattern: "held",
      bassPattern: "root",
      reverb: 0.28,
    },
  ],
  [
    /\b(rock|metal|punk|guitar\w*|grunge|energetic|fast|power\w*)\b/,
    {
      ...POP,
      tempo: [126, 144],
      kick: "x..x..x.x..x....",
      snare: "....x.......x...",
      hat: "x.x.x.x.x.x.x.x.",
      lead: "saw",
      comp: "saw",
      pad: "organ",
      compPattern: "beats",
      bassPattern: "drive",
      duck: 0,
    },
  ],
  [
    /\b(ambient|calm\w*|sleep\w*|meditat\w*|space|dream\w*|peaceful|ocean|night|fog|snow)\b/,
    {
      ...POP,
      tempo: [64, 74],
      kick: "................",
      snare: "................",
      hat: "o.......o.......",
      lead: "bell",
      comp: "pluck",
      pad: "warm",
      compPattern: "arpeggio",
      bassPattern: "root",
      reverb: 0.42,
    },
  ],
  [
    /\b(jazz\w*|swing|blues|bossa|saxophone|lounge)\b/,
    {
      ...POP,
      tempo: [104, 124],
      swing: 0.17,
      kick: "x.......o.......",
      snare: "......o.......o.",
      hat: "x...x.o.x...x.o.",
      lead: "flute",
      comp: "keys",
      pad: "warm",
      compPattern: "offbeat",
      bassPattern: "walking",
      duck: 0,
    },
  ],
  [
    /\b(waltz|ballroom|carousel|fairy\w*|ballet)\b/,
    {
      ...POP,
      tempo: [92, 112],
      beatsPerBar: 3,
      kick: "x...........",
      snare: "....o...o...",
      hat: "....o...o...",
      lead: "flute",
      comp: "pluck",
      bassPattern: "root",
      duck: 0,
      reverb: 0.3,
    },
  ],
  [
    /\b(classical|orchestra\w*|cinematic|epic|film|hero\w*|battle|adventure|castle|dragon)\b/,
    {
      ...POP,
      tempo: [84, 100],
      kick: "x.....x.x.......",
      snare: "............o.oo",
      hat: "................",
      lead: "flute",
      comp: "pluck",
      pad: "strings",
      compPattern: "arpeggio",
      bassPattern: "octaves",
      duck: 0,
      reverb: 0.36,
    },
  ],
  [
    /\b(folk|acoustic|country|campfire|banjo|ukulele|spring|garden|morning)\b/,
    {
      ...POP,
      tempo: [96, 112],
      kick: "x.......x.......",
      snare: "....o.......o...",
      hat: "o.o.x.o.o.o.x.o.",
      lead: "flute",
      comp: "pluck",
      pad: "warm",
      compPattern: "arpeggio",
      bassPattern: "octaves",
      duck: 0,
    },
  ],
  [
    /\b(8-?bit|chip\w*|game|arcade|pixel|retro|robot)\b/,
    {
      ...POP,
      tempo: [134, 150],
      kick: "x...x...x...x...",
      snare: "....x.......x...",
      hat: "x.x.x.x.x.x.x.x.",
      lead: "square",
      comp: "square",
      pad: "organ",
      compPattern: "arpeggio",
      bassPattern: "drive",
      duck: 0,
      reverb: 0.1,
    },
  ],
];

const DARK_WORDS =
  /\b(sad\w*|melanchol\w*|dark\w*|lonely|rain\w*|cry\w*|tears?|minor|night|goodbye|lost|winter|fear|battle|ghost\w*|storm\w*)\b/;
const BRIGHT_WORDS =
  /\b(happy|joy\w*|bright|summer|sun\w*|love\w*|major|cheer\w*|party|hope\w*|birthday|spring|smile\w*|morning|dance)\b/;

const DARK_SCALES: readonly ScaleName[] = ["minor", "minor", "dorian"];
const BRIGHT_SCALES: readonly ScaleName[] = ["major", "major", "mixolydian", "lydian"];

/** What the words ask for: a style, and a bright or dark scale. */
export type Taste = {
  readonly style: Style;
  readonly scaleName: ScaleName;
  readonly dark: boolean;
  readonly tempo: number;
};

/** Reads title and description as a band leader would; where no word helps, chance decides. */
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
