// Finds in a prompt which scene, colours and particles are painted, and which audio a video has.

import type { Random } from "../seed.ts";
import { words } from "../words.ts";
import { type Palette, type PaletteName, tintedPalette } from "./palettes.ts";

/** The kind of image that is painted. */
export type SceneKind =
  | "mountains"
  | "sea"
  | "city"
  | "forest"
  | "desert"
  | "space"
  | "ribbons"
  | "meadow";

/** The particles that drift through the air. */
export type ParticleKind = "snow" | "fireflies" | "dust" | "rain" | "birds" | "petals";

/** The choices that a prompt leads to. */
export type Mood = {
  readonly scene: SceneKind;
  readonly palette: Palette;
  readonly particles: ParticleKind;
};

const SCENE_WORDS: readonly (readonly [SceneKind, RegExp])[] = [
  [
    "space",
    words("space planet galax\\w* nebula cosm\\w* spaceship astronaut orbit mars universe"),
  ],
  ["city", words("city cities town street skyline tokyo paris york building neon robot cyber\\w*")],
  [
    "sea",
    words(
      "sea ocean beach wave coast island boat ship sail\\w* harbou?r whale dolphin fish lighthouse",
    ),
  ],
  ["forest", words("forest tree wood jungle pine fox deer bear owl wolf elf fairy")],
  ["desert", words("desert dune sand camel sahara canyon pyramid cactus lion elephant")],
  ["meadow", words("meadow field hill flower farm garden grass horse cow sheep dog cat rabbit")],
  ["mountains", words("mountain peak alps lake valley glacier volcano eagle dragon castle")],
  ["ribbons", words("abstract pattern logo gradient wallpaper minimal\\w* shape music")],
];

const PALETTE_WORDS: readonly (readonly [readonly PaletteName[], RegExp])[] = [
  [["neon", "violet"], words("neon cyber\\w* synth\\w* retro\\w* vapou?r\\w*")],
  [["night", "teal"], words("night midnight moon\\w* dark star starry owl")],
  [["golden", "rose", "ember"], words("sunset dusk evening golden sundown")],
  [["dawn"], words("dawn sunrise morning")],
  [["snow"], words("snow\\w* winter ice icy glacier arctic christmas")],
  [["storm"], words("storm\\w* rain\\w* thunder\\w* fog\\w* grey gray gloomy")],
  [["autumn"], words("autumn october harvest fox")],
  [["ember"], words("fire lava volcano red dragon flame")],
  [["violet"], words("purple violet magic\\w* dream\\w* galax\\w* nebula")],
  [["meadow", "noon"], words("spring summer sunny green daylight blue")],
];

const PARTICLE_WORDS: readonly (readonly [ParticleKind, RegExp])[] = [
  ["snow", words("snow\\w* winter ice arctic christmas")],
  ["rain", words("rain\\w* storm\\w* thunder\\w*")],
  ["fireflies", words("firefl\\w* magic\\w* fairy fairies night glow\\w* lantern")],
  ["petals", words("flower petal cherry sakura autumn leaves spring")],
  ["birds", words("bird gull seagull eagle crow swallow")],
];

const SCENE_PALETTES: Record<SceneKind, readonly PaletteName[]> = {
  mountains: ["golden", "rose", "dawn", "noon", "teal", "night", "violet", "snow"],
  sea: ["golden", "rose", "dawn", "noon", "teal", "ember", "night"],
  city: ["rose", "neon", "night", "violet", "golden", "teal"],
  forest: ["dawn", "meadow", "teal", "golden", "autumn", "night"],
  desert: ["dune", "golden", "ember", "rose"],
  space: ["violet", "night", "teal", "ember", "neon"],
  ribbons: ["golden", "rose", "noon", "teal", "violet", "ember", "neon", "meadow", "night"],
  meadow: ["meadow", "meadow", "noon", "golden", "autumn"],
};

const SCENE_PARTICLES: Record<SceneKind, readonly ParticleKind[]> = {
  mountains: ["birds", "dust"],
  sea: ["birds"],
  city: ["dust", "birds"],
  forest: ["fireflies", "dust"],
  desert: ["dust", "birds"],
  space: ["dust"],
  ribbons: ["dust"],
  meadow: ["petals", "birds"],
};

/** How far the hues of a palette may turn either way, in degrees. More would spoil skin and sky. */
const MAX_HUE_TURN = 9;

/**
 * Reads a prompt like a painter. Its first word of a place picks the scene, and a word of an hour or weather picks the colours. Where
 * no word helps, the prompt's own random sequence decides.
 */
export function readMood(prompt: string, random: Random): Mood {
  const text = prompt.toLowerCase();
  const places = SCENE_WORDS.map(([kind, pattern]) => ({ kind, at: text.search(pattern) }))
    .filter(({ at }) => at >= 0)
    .sort((one, other) => one.at - other.at);
  const scene = places[0]?.kind ?? random.pick(Object.keys(SCENE_PALETTES) as SceneKind[]);
  const named = PALETTE_WORDS.find(([, pattern]) => pattern.test(text))?.[0];
  const name = random.pick(named ?? SCENE_PALETTES[scene]);
  const drifting = PARTICLE_WORDS.find(([, pattern]) => pattern.test(text))?.[0];
  return {
    scene,
    palette: tintedPalette(name, random.between(-MAX_HUE_TURN, MAX_HUE_TURN)),
    particles: drifting ?? random.pick(SCENE_PARTICLES[scene]),
  };
}
