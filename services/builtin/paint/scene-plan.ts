// Declares what every painter of a scene is given: the frame, the palette, the light.

import type { Random } from "../seed.ts";
import type { Noise } from "./noise.ts";
import type { Palette } from "./palettes.ts";
import type { FrameSize } from "./raster.ts";

/** Place and size of the sun or moon, in pixels of the frame. */
export type Light = { readonly x: number; readonly y: number; readonly radius: number };

/** The values that every painter of a scene gets. */
export type ScenePlan = {
  readonly frame: FrameSize;
  /** The frame's shorter side in pixels: the measure of every feature. */
  readonly short: number;
  readonly palette: Palette;
  readonly light: Light;
  /** Frame row where the sky ends. */
  readonly horizon: number;
  readonly random: Random;
  readonly noise: Noise;
  /** Width in pixels of a sheet that moves at `speed` for the whole video (an image: 0 s). */
  readonly widthFor: (speed: number) => number;
};
