// Paints firs, for scenes of a forest. `scene.ts` asks for them.

import type { Random } from "../seed.ts";
import { mix, type Rgb, ramp, scale, smoothstep } from "./colour.ts";
import type { Fold } from "./land.ts";
import { createNoise } from "./noise.ts";
import { blendPixel, createRaster, dither, type Layer, type Raster } from "./raster.ts";
import { paintRidge } from "./ridge.ts";
import type { ScenePlan } from "./scene-plan.ts";

/** The colours of a stand of trees: body, the rim that faces the light, and the mist at its foot. */
type Foliage = { readonly body: Rgb; readonly rim: Rgb; readonly mist: Rgb; readonly fog: number };

/** A stand of firs on rising ground. `height` is the mean height of a tree in pixels. */
export function paintFirs(plan: ScenePlan, fold: Fold, height: number, crowd: number): Layer {
  const { palette, short, frame } = plan;
  const random = plan.random.fork(fold.name);
  const noise = createNoise(random);
  const width = plan.widthFor(fold.speed);
  const body = ramp(palette.land)(0.2 + fold.nearness * 0.8);
  const foliage: Foliage = {
    body,
    rim: mix(body, palette.glow, 0.34 - fold.nearness * 0.2),
    mist: mix(palette.land[0] as Rgb, palette.sky[3] as Rgb, 0.5),
    fog: 0.72 * (1 - fold.nearness),
  };
  const ground = (x: number): number =>
    fold.base - fold.swing * noise.at(x / (short * 0.7), 3.1) - noise.at(x / (short * 0.06), 9);
  const soil = paintRidge({
    frame,
    width,
    speed: fold.speed,
    line: ground,
    colour: (_x, _y, depth) =>
      mix(foliage.body, foliage.mist, smoothstep(0, short * 0.3, depth) * foliage.fog),
  });
  const top = Math.max(0, Math.floor((fold.base - fold.swing - height * 1.7) / 2) * 2);
  const raster = createRaster(soil.raster.width, frame.height - top);
  const step = (height * 0.34) / crowd;
  for (
    let x = -height * 0.3;
    x < raster.width + height * 0.3;
    x += step * random.between(0.5, 1.5)
  ) {
    const tall = height * (0.55 + 0.75 * random.next() ** 1.5);
    const foot = ground(x) + height * 0.06;
    const side = x < plan.light.x ? 1 : -1;
    paintFir(raster, { x, foot: foot - top, tall, side }, foliage, random);
  }
  lay(soil, raster, top);
  return { raster, top, speed: fold.speed };
}

type Fir = {
  readonly x: number;
  readonly foot: number;
  readonly tall: number;
  readonly side: number;
};

function paintFir(raster: Raster, fir: Fir, foliage: Foliage, random: Random): void {
  const { x, foot, tall, side } = fir;
  const tiers = 10 + random.below(6);
  const spread = tall * random.between(0.13, 0.18);
  const phase = random.next();
  const shade = random.between(0.86, 1.08);
  for (let y = Math.floor(foot - tall); y <= Math.min(foot, raster.height - 1); y++) {
    if (y < 0) continue;
    const down = (y + 0.5 - (foot - tall)) / tall;
    if (down <= 0 || down > 1) continue;
    // Each tier of branches widens and springs back, like a saw along the trunk.
    const saw = (down * tiers + phase) % 1;
    const ragged = 1 + dither(y, Math.round(phase * 1000)) * 0.22 * saw;
    const half = spread * down ** 0.85 * (0.42 + 0.62 * saw) * ragged + 0.3;
    const lean = Math.sin(Math.floor(down * tiers + phase) * 2.7 + phase * 9) * half * 0.12;
    const left = x - half + lean;
    const right = x + half + lean;
    const fog = foliage.fog * smoothstep(0.25, 1, down);
    for (let px = Math.floor(left); px <= right; px++) {
      const cover = Math.min(px + 1, right) - Math.max(px, left);
      const across = ((px + 0.5 - x) / half) * side;
      const lit = smoothstep(0.1, 1, across) * (0.35 + 0.65 * saw);
      const paint = mix(scale(foliage.body, shade), foliage.rim, lit);
      blendPixel(raster, px, y, mix(paint, foliage.mist, fog), Math.min(Math.max(cover, 0), 1));
    }
  }
}

/** Lays the trees over their ground. Empty places of the raster are filled from the soil's fold. */
function lay(soil: Layer, raster: Raster, top: number): void {
  for (let row = 0; row < soil.raster.height; row++) {
    const y = soil.top + row - top;
    if (y < 0 || y >= raster.height) continue;
    for (let x = 0; x < raster.width; x++) {
      const from = (row * soil.raster.width + x) * 4;
      const to = (y * raster.width + x) * 4;
      const ground = (soil.raster.rgba[from + 3] as number) / 255;
      const tree = (raster.rgba[to + 3] as number) / 255;
      const below = ground * (1 - tree);
      const total = tree + below;
      if (total <= 0) continue;
      for (let channel = 0; channel < 3; channel++) {
        const over = raster.rgba[to + channel] as number;
        const under = soil.raster.rgba[from + channel] as number;
        raster.rgba[to + channel] = (over * tree + under * below) / total + 0.5;
      }
      raster.rgba[to + 3] = total * 255 + 0.5;
    }
  }
}
