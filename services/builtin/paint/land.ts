// Paints mountains, hills, dunes and waves of colour. `scene.ts` asks for them.

import { mix, type Rgb, ramp, scale, smoothstep } from "./colour.ts";
import { createNoise } from "./noise.ts";
import type { Layer } from "./raster.ts";
import { paintRidge } from "./ridge.ts";
import type { ScenePlan } from "./scene-plan.ts";

/** One fold of land among several: `nearness` is 0 for the farthest and 1 for the nearest. */
export type Fold = {
  readonly name: string;
  readonly nearness: number;
  /** Mean frame row of its line, and how far the line rises and falls, in pixels. */
  readonly base: number;
  readonly swing: number;
  readonly speed: number;
};

/** Rocky mountains with lit flanks, snow on high ground and mist at their feet. */
export function paintMountain(plan: ScenePlan, fold: Fold): Layer {
  const { palette, short } = plan;
  const noise = createNoise(plan.random.fork(fold.name));
  const width = plan.widthFor(fold.speed);
  // One side for the whole sheet. A change in its middle would show as a seam.
  const side = plan.light.x > plan.frame.width / 2 ? 1 : -1;
  const body = ramp(palette.land)(0.08 + fold.nearness * 0.72);
  const mist = mix(palette.land[0] as Rgb, palette.sky[3] as Rgb, 0.45);
  const lit = mix(body, palette.glow, 0.42 - fold.nearness * 0.2);
  const dark = mix(scale(body, 0.72), palette.land[3] as Rgb, 0.25);
  const wave = short * (0.62 - fold.nearness * 0.12);
  const line = (x: number): number => {
    const crest = noise.ridged(x / wave, 3.7, 5);
    const swell = noise.at(x / (wave * 2.2), 11.3);
    return fold.base - fold.swing * (crest * 1.35 - 0.45 + swell * 0.35);
  };
  const grain = short * 0.2;
  const snowLine = fold.base - fold.swing * 0.28;
  const colour = (x: number, y: number, depth: number): Rgb => {
    const u = x / grain + (y / grain) * 0.35 * side;
    const v = (y / grain) * 0.8;
    const facet = noise.ridged(u + 0.05 * side, v, 4) - noise.ridged(u, v, 4);
    const flank = Math.min(Math.max(0.42 + facet * 5.5, 0), 1);
    let paint = mix(dark, lit, flank);
    const snow = smoothstep(0, fold.swing * 0.35, snowLine - y + noise.at(u * 2, v * 2) * grain);
    if (snow > 0 && fold.nearness < 0.7) {
      const white = mix(palette.cloudShade, palette.cloudLit, 0.25 + flank * 0.75);
      paint = mix(paint, white, snow * 0.8 * (1 - fold.nearness * 0.6));
    }
    const fog = smoothstep(fold.swing * 0.2, fold.swing * 1.9, depth);
    return mix(paint, mist, fog * (0.78 - fold.nearness * 0.6));
  };
  return paintRidge({ frame: plan.frame, width, speed: fold.speed, line, colour });
}

/** Soft grassy hills, striped by the light. */
export function paintHill(plan: ScenePlan, fold: Fold): Layer {
  const { palette, short } = plan;
  const noise = createNoise(plan.random.fork(fold.name));
  const width = plan.widthFor(fold.speed);
  const body = ramp(palette.land)(0.12 + fold.nearness * 0.68);
  const bright = mix(body, palette.glow, 0.4 - fold.nearness * 0.18);
  const wave = short * (1.05 - fold.nearness * 0.25);
  const line = (x: number): number =>
    fold.base - fold.swing * (noise.at(x / wave, 2.2) + 0.3 * noise.at(x / (wave * 0.37), 7.7));
  const colour = (x: number, y: number, depth: number): Rgb => {
    const slope = (line(x + 3) - line(x - 3)) / 6;
    const facing = slope * Math.min(Math.max((x - plan.light.x) / short, -1), 1);
    const rim = Math.exp(-depth / (short * 0.05));
    const blades = noise.fractal(x / (short * 0.012), y / (short * 0.05), 2) * 0.16;
    const field = noise.at(x / (short * 0.5), y / (short * 0.09)) * 0.16;
    const lit = 0.28 + rim * 0.5 + facing * 0.7 + blades * (0.4 + fold.nearness) + field;
    const paint = mix(scale(body, 0.8), bright, Math.min(Math.max(lit, 0), 1));
    const shade = smoothstep(0, short * 0.6, depth) * 0.3 * (0.4 + fold.nearness);
    return mix(paint, palette.land[3] as Rgb, shade);
  };
  return paintRidge({ frame: plan.frame, width, speed: fold.speed, line, colour });
}

/** Dunes with a knife-sharp crest: one side in the light, the other in shadow, ripples on both. */
export function paintDune(plan: ScenePlan, fold: Fold): Layer {
  const { palette, short } = plan;
  const noise = createNoise(plan.random.fork(fold.name));
  const width = plan.widthFor(fold.speed);
  const body = ramp(palette.land)(0.1 + fold.nearness * 0.6);
  const lit = mix(body, palette.glow, 0.55 - fold.nearness * 0.15);
  const dark = mix(body, palette.land[3] as Rgb, 0.32 + fold.nearness * 0.2);
  const wave = short * (0.85 + fold.nearness * 0.4);
  const crest = (x: number): number => 1 - Math.abs(noise.at(x / wave, 5.1)) * 1.6;
  const line = (x: number): number =>
    fold.base - fold.swing * (crest(x) - 0.3 + 0.25 * noise.at(x / (wave * 2.5), 1.3));
  const lightFromLeft = plan.light.x < plan.frame.width / 2 ? 1 : -1;
  const colour = (x: number, y: number, depth: number): Rgb => {
    // The shadow's edge runs down from the crest in a slow curve.
    const bend = noise.at(y / (short * 0.25), fold.base) * short * 0.06;
    const across = noise.at((x + depth * 0.9 * lightFromLeft + bend) / wave, 5.1);
    const facing = smoothstep(-0.06, 0.06, across * lightFromLeft);
    const ripple = Math.sin(
      y / (short * 0.006) + noise.at(x / (short * 0.1), y / (short * 0.06)) * 5,
    );
    const fade = Math.exp(-depth / (short * 0.5));
    const paint = mix(dark, lit, (0.18 + 0.72 * facing) * (0.55 + 0.45 * fade));
    return scale(paint, 1 + ripple * 0.025 * (0.3 + fold.nearness));
  };
  return paintRidge({ frame: plan.frame, width, speed: fold.speed, line, colour });
}

/** A glossy, seemingly translucent wave of colour, for abstract images. */
export function paintRibbon(plan: ScenePlan, fold: Fold, colours: readonly [Rgb, Rgb]): Layer {
  const { short } = plan;
  const random = plan.random.fork(fold.name);
  const noise = createNoise(random);
  const width = plan.widthFor(Math.abs(fold.speed));
  const wave = short * random.between(0.85, 1.5);
  const lean = random.between(-0.35, 0.35);
  const line = (x: number): number =>
    fold.base +
    lean * (x - width / 2) * 0.3 -
    fold.swing * (Math.sin(x / (wave * 0.32) + fold.nearness * 9) * 0.5 + noise.at(x / wave, 4.4));
  const colour = (x: number, _y: number, depth: number): Rgb => {
    const drift = noise.at(x / (short * 0.9), depth / (short * 0.5)) * 0.25;
    const inward = smoothstep(0, short * 0.42, depth);
    const gloss =
      Math.exp(-depth / (short * 0.022)) * 0.55 + Math.exp(-depth / (short * 0.1)) * 0.3;
    const paint = mix(colours[0], colours[1], Math.min(Math.max(inward + drift, 0), 1));
    return mix(paint, [255, 255, 255], gloss * 0.6);
  };
  return paintRidge({ frame: plan.frame, width, speed: fold.speed, line, colour });
}
