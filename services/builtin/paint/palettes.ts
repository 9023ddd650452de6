// Lists the colours of each hour and weather. Every painter takes its colours from here.

import { hex, type Rgb, turnHue } from "./colour.ts";

/** The colours of one hour and weather. Every painter takes its colours from here. */
export type Palette = {
  /** Top of the sky down to the horizon. */
  readonly sky: readonly Rgb[];
  /** The sun's or moon's disc, and the glow around it. */
  readonly light: Rgb;
  readonly glow: Rgb;
  /** Land from far (hazy) to near (dark). */
  readonly land: readonly Rgb[];
  readonly cloudLit: Rgb;
  readonly cloudShade: Rgb;
  /** Windows, fireflies, the line beside the caption. */
  readonly accent: Rgb;
  /** How many stars show, 0 to 1. */
  readonly stars: number;
};

export type PaletteName = keyof typeof PALETTES;

/** Reads colours: the sky from its top down | disc, glow | land from far to near | lit cloud, its shade | accent. */
function palette(list: string, stars = 0): Palette {
  const groups = list.split(" | ").map((group) => group.split(" ").map(hex));
  const [sky = [], [light, glow] = [], land = [], [cloudLit, cloudShade] = [], [accent] = []] =
    groups;
  return { sky, light, glow, land, cloudLit, cloudShade, accent, stars } as Palette;
}

const PALETTES = {
  golden: palette(
    "2d4a7a 7f6f9d e79a76 ffd49a | fff6dc ffb45e | e0a184 96607a 43305a 1a1730 | ffe0b4 8d6a90 | ffd27a",
  ),
  rose: palette(
    "243060 7a4a86 d9728a ffc0a0 | fff0e4 ff8f86 | d98aa0 86527f 3c2c58 150f2b | ffc9bd 6f4b86 | ffb3a1",
    0.15,
  ),
  dawn: palette(
    "5a7fb0 9db4d0 f0d2c0 ffeacb | fffdf2 ffd9a0 | cfc3cf 8397b0 48607c 1c2b40 | fff4e6 a9b4cc | ffe2a8",
  ),
  noon: palette(
    "1d5fa8 4f93cf 9cc9e8 e2f1f4 | ffffff fff3cf | a9c6d4 5f93a0 2c6157 12332f | ffffff a3bfd8 | ffe9a3",
  ),
  meadow: palette(
    "3b86b8 7fbcd2 cfe7d8 f7f2d2 | fffef0 fff0b0 | b7d0bd 74a37f 2f6b4d 10332a | ffffff b3cbc8 | fff0a0",
  ),
  teal: palette(
    "08131f 10364a 2f7f86 a4d8c2 | f3fff5 7fe0c8 | 6fb0a8 2f6f78 123f4c 06161f | bfe8d6 235560 | 9dffd9",
    0.45,
  ),
  night: palette(
    "040a1c 0b1b40 1f3d70 5b7fa8 | fdfbee 9fc0ee | 4a6a94 24406a 0f2040 040916 | 8ea9cc 16284c | ffd98a",
    1,
  ),
  violet: palette(
    "0c0626 2a1058 6f2f96 e08ac4 | fff0fa d884e8 | a565b0 5c3289 2a175a 0b0622 | e6a8dc 3c1f70 | ff9be8",
    0.8,
  ),
  ember: palette(
    "1c0f1e 54202c b8482e ffb057 | ffefc2 ff7a32 | c06a44 7c3830 3d1d26 140a12 | ffb070 57263a | ffb347",
    0.2,
  ),
  dune: palette(
    "6b93a8 a9bcb0 eccf9f ffe3b0 | fffbe8 ffd48a | e9bf8c cc8a55 8f5238 3f2424 | fff0d2 c6ae98 | fff0c4",
  ),
  storm: palette(
    "262f3a 46535f 7b8a92 b9c3c2 | eef2ee c7d2d2 | 93a1a6 5f707a 333f4b 12181f | c3cccd 3f4a56 | ffd9a0",
  ),
  snow: palette(
    "7b97bd a9bfd9 d7e1ec f6eee8 | ffffff ffe9d2 | d4deea 9fb3cc 5b7396 22304a | ffffff a9b9d2 | ffffff",
  ),
  autumn: palette(
    "5b6f88 a99a94 e6bd8c f9e0b0 | fff8e0 ffc778 | d6a878 b5703c 6b3a24 26140f | fbe6c8 9c8c88 | ffb65a",
  ),
  neon: palette(
    "05060f 1a0f3c 5a1a78 f2589a | ffe6f4 ff5fb0 | 8a3a96 40246e 1a1340 070614 | d070c0 2a1650 | 4ff0ff",
    0.6,
  ),
};

/** The palette of that name, with its hues turned by a few degrees so that two images differ. */
export function tintedPalette(name: PaletteName, degrees: number): Palette {
  const found: Palette = PALETTES[name];
  const turn = (colour: Rgb): Rgb => turnHue(colour, degrees);
  return {
    sky: found.sky.map(turn),
    land: found.land.map(turn),
    light: found.light,
    glow: turn(found.glow),
    cloudLit: turn(found.cloudLit),
    cloudShade: turn(found.cloudShade),
    accent: turn(found.accent),
    stars: found.stars,
  };
}
