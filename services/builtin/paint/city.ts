// Paints rows of houses, for scenes of a city. `scene.ts` asks for them.

import type { Random } from "../seed.ts";
import { mix, type Rgb, ramp, scale, smoothstep } from "./colour.ts";
import type { Fold } from "./land.ts";
import { createRaster, type Layer, type Raster, setPixel } from "./raster.ts";
import type { ScenePlan } from "./scene-plan.ts";
import { softDot } from "./sky.ts";

/** The colours and measures that all houses of a sheet share. */
type Street = {
  readonly body: Rgb;
  readonly mist: Rgb;
  readonly fog: number;
  readonly windows: readonly Rgb[];
  /** Side of a window's cell in pixels. Below about 3 the windows blur into speckles. */
  readonly cell: number;
  readonly glow: Rgb;
  readonly lit: number;
};

type House = { readonly left: number; readonly right: number; readonly roof: number };

/** A row of tall houses with lit windows, masts and mist between the rows. */
export function paintHouses(plan: ScenePlan, fold: Fold, tall: number): Layer {
  const { palette, short, frame } = plan;
  const random = plan.random.fork(fold.name);
  const width = plan.widthFor(fold.speed);
  const top = Math.max(0, Math.floor((fold.base - tall * 1.75) / 2) * 2);
  const raster = createRaster(width, frame.height - top);
  const body = ramp(palette.land)(0.22 + fold.nearness * 0.72);
  const street: Street = {
    body,
    mist: mix(palette.land[0] as Rgb, palette.sky[3] as Rgb, 0.5),
    fog: 0.75 - fold.nearness * 0.5,
    windows: [palette.accent, mix(palette.accent, [255, 244, 214], 0.7), palette.light],
    cell: Math.max(2, Math.round(short * (0.006 + fold.nearness * 0.0095))),
    glow: palette.glow,
    lit: 0.16 + 0.3 * random.next(),
  };
  const ground = fold.base - top;
  let x = -random.between(0, short * 0.1);
  while (x < raster.width) {
    const wide = Math.round(short * (0.045 + random.next() * 0.075) * (0.6 + fold.nearness));
    const roof = Math.round(ground - tall * (0.3 + 1.1 * random.next() ** 2.2));
    const house = { left: Math.round(x), right: Math.round(x) + wide, roof };
    paintHouse(raster, house, street, random);
    x += wide + Math.round(random.next() ** 3 * short * 0.04);
  }
  return { raster, top, speed: fold.speed };
}

function paintHouse(raster: Raster, house: House, street: Street, random: Random): void {
  const shade = random.between(0.82, 1.14);
  const steps = random.below(3);
  const wide = house.right - house.left;
  const notch = Math.round(wide * random.between(0.12, 0.24));
  const rise = Math.round(wide * random.between(0.3, 0.9));
  for (let y = Math.max(0, house.roof - steps * rise); y < raster.height; y++) {
    // A stepped crown: each step above the roof is narrower than the one below.
    const above = Math.max(0, Math.ceil((house.roof - y) / rise));
    const inset = Math.min(above * notch, Math.floor(wide / 2) - 1);
    paintFloor(raster, y, house.left + inset, house.right - inset, shade, street, house);
  }
  paintWindows(raster, house, street, random);
  if (steps > 0 && random.next() < 0.6) paintMast(raster, house, street, steps * rise, rise);
}

function paintFloor(
  raster: Raster,
  y: number,
  left: number,
  right: number,
  shade: number,
  street: Street,
  house: House,
): void {
  const fog = street.fog * smoothstep(0, raster.height - house.roof, y - house.roof);
  for (let x = Math.max(0, left); x < Math.min(raster.width, right); x++) {
    const across = (x - left) / (right - left);
    const edge = x - left < 1 || right - x <= 1 ? 0.07 : 0;
    const paint = mix(scale(street.body, shade), street.glow, 0.1 * (1 - across) + edge);
    setPixel(raster, x, y, mix(paint, street.mist, fog), 1);
  }
}

function paintWindows(raster: Raster, house: House, street: Street, random: Random): void {
  const { cell } = street;
  const pane = Math.max(1, Math.round(cell * 0.5));
  const deep = Math.max(1, Math.round(cell * 0.62));
  const own = street.lit * random.between(0.3, 1.6);
  for (let y = house.roof + cell; y < raster.height - cell; y += Math.round(cell * 1.5)) {
    const office = random.next() < 0.12;
    for (let x = house.left + cell; x <= house.right - cell - pane; x += cell + 1) {
      if (random.next() > (office ? 0.8 : own)) continue;
      const light = random.pick(street.windows);
      const bright = random.between(0.45, 1) * (1 - street.fog * 0.5);
      for (let py = y; py < y + deep; py++) {
        for (let px = x; px < x + pane; px++) {
          if (px < 0 || py < 0 || px >= raster.width || py >= raster.height) continue;
          setPixel(raster, px, py, mix(street.body, light, bright), 1);
        }
      }
    }
  }
}

function paintMast(
  raster: Raster,
  house: House,
  street: Street,
  crown: number,
  rise: number,
): void {
  const middle = Math.round((house.left + house.right) / 2);
  const foot = house.roof - crown;
  const tip = Math.max(1, foot - Math.round(rise * 1.4));
  if (middle < 1 || middle >= raster.width - 1) return;
  for (let y = tip; y < foot; y++) setPixel(raster, middle, y, street.body, 0.9);
  setPixel(raster, middle, tip, [255, 90, 80], 1);
  softDot(raster, middle, tip, Math.max(1, street.cell * 0.4), [255, 70, 60], 0.6);
}
