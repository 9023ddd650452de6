// Paints water that mirrors the image above it, still or moving.

import type { Random } from "../seed.ts";
import { mix, type Rgb } from "./colour.ts";
import { createNoise } from "./noise.ts";
import type { Palette } from "./palettes.ts";
import { colourIn, type Picture, type Plane } from "./planar.ts";
import type { Light } from "./scene-plan.ts";

/** A stretch of water that mirrors the image above it. */
export type Water = {
  /** Frame row of the shore. It is even. */
  readonly top: number;
  /** 0: a still lake, 1: the open sea. */
  readonly roughness: number;
  /** Paints the water at a time in seconds. */
  readonly paint: (picture: Picture, timeSeconds: number) => void;
};

/** Sides of the table of glints. They are powers of two, so that it wraps without a division. */
const TABLE_WIDTH = 512;
const TABLE_HEIGHT = 128;

/** Prepares water that lies below `top`, shining in the colours of the palette and the light. */
export function createWater(
  top: number,
  roughness: number,
  palette: Palette,
  light: Light,
  random: Random,
): Water {
  const glints = glintTable(random);
  const deep = mix(palette.land[3] as Rgb, palette.sky[1] as Rgb, 0.42);
  const paint = (picture: Picture, timeSeconds: number): void => {
    const tint = colourIn(picture.format, deep);
    const shine = colourIn(picture.format, mix(palette.light, palette.glow, 0.35));
    picture.planes.forEach((plane, index) => {
      const scale = 1 << plane.shift;
      const shore = top >> plane.shift;
      mirror(plane, shore, tint[index] as number, roughness, timeSeconds * 1.1, scale);
      sparkle(plane, shore, glints, shine[index] as number, {
        column: light.x / scale,
        spread: (picture.width / scale) * (0.08 + roughness * 0.14),
        strength: 0.35 + roughness * 0.5,
        time: timeSeconds,
        scale,
      });
    });
  };
  return { top, roughness, paint };
}

/** Copies the rows above the shore upside down, each shifted a little by the ripples. */
function mirror(
  plane: Plane,
  shore: number,
  tint: number,
  roughness: number,
  phase: number,
  scale: number,
): void {
  const { data, width, height } = plane;
  const rows = height - shore;
  const squash = Math.min(1, (shore - 1) / rows) * (1 - 0.2 * roughness);
  for (let row = 0; row < rows; row++) {
    const near = row / rows;
    const distance = (row * scale) / (0.06 * rows * scale + row * scale);
    const wave =
      Math.sin(distance * 70 - phase * 2.3) * 0.6 + Math.sin(distance * 163 + phase * 3.7) * 0.4;
    const lift = wave * (0.6 + near * rows * 0.02) * (0.5 + roughness * 2.4);
    const from = Math.round(shore - 1 - row * squash + lift);
    const source = Math.min(Math.max(from, 0), shore - 1) * width;
    const swing = wave * (0.4 + near * width * 0.006) * (0.6 + roughness * 1.6);
    const shift = Math.round(swing);
    const share = Math.round(256 * (0.16 + 0.42 * near + 0.1 * roughness + wave * 0.05));
    const target = (shore + row) * width;
    for (let x = 0; x < width; x++) {
      const column = x + shift;
      const inside = column < 0 ? 0 : column >= width ? width - 1 : column;
      const image = data[source + inside] as number;
      data[target + x] = (image * (256 - share) + tint * share) >> 8;
    }
  }
}

type Sparkle = {
  readonly column: number;
  readonly spread: number;
  readonly strength: number;
  readonly time: number;
  readonly scale: number;
};

/** Paints glints of light on the water below the sun: two moving tables, bright where both are. */
function sparkle(
  plane: Plane,
  shore: number,
  glints: Uint8Array,
  shine: number,
  how: Sparkle,
): void {
  const { data, width, height } = plane;
  const rows = height - shore;
  const drift = Math.round(how.time * 26);
  for (let row = 0; row < rows; row++) {
    const near = (row + 0.5) / rows;
    // Perspective: waves look small and crowded at the shore, wide at the viewer's feet.
    const depth = 1 / (near + 0.05);
    const zoom = ((6 + depth * 2.2) * how.scale * 90) / (width * how.scale);
    const line = Math.floor(depth * 30);
    const first = ((line + Math.floor(how.time * 3)) & (TABLE_HEIGHT - 1)) * TABLE_WIDTH;
    const second = ((line * 3 + 40 - Math.floor(how.time * 2)) & (TABLE_HEIGHT - 1)) * TABLE_WIDTH;
    const reach = how.spread * (0.5 + near * 1.7);
    const from = Math.max(0, Math.floor(how.column - reach * 2.2));
    const to = Math.min(width - 1, Math.ceil(how.column + reach * 2.2));
    const target = (shore + row) * width;
    for (let x = from; x <= to; x++) {
      const across = (x - how.column) / reach;
      const envelope = how.strength / (1 + across * across * across * across * 2 + across * across);
      const at = Math.floor((x + 4096) * zoom * 0.1);
      const a = glints[first + ((at + drift) & (TABLE_WIDTH - 1))] as number;
      const b = glints[second + ((at * 2 - drift) & (TABLE_WIDTH - 1))] as number;
      const bright = a + b - 300;
      if (bright <= 0) continue;
      const share = Math.min(235, bright * envelope * 3.2) | 0;
      const under = data[target + x] as number;
      data[target + x] = (under * (256 - share) + shine * share) >> 8;
    }
  }
}

function glintTable(random: Random): Uint8Array {
  const noise = createNoise(random.fork("glints"));
  const table = new Uint8Array(TABLE_WIDTH * TABLE_HEIGHT);
  for (let y = 0; y < TABLE_HEIGHT; y++) {
    for (let x = 0; x < TABLE_WIDTH; x++) {
      // Walking a circle in the noise makes the table join at its edges.
      const angle = (x / TABLE_WIDTH) * Math.PI * 2;
      const value = noise.fractal(
        Math.cos(angle) * 11 + y * 0.9,
        Math.sin(angle) * 11 + y * 2.3,
        2,
      );
      table[y * TABLE_WIDTH + x] = Math.min(255, Math.max(0, 128 + value * 190));
    }
  }
  return table;
}
