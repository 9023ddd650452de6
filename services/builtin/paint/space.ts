// Paints nebulae and planets, for scenes in space. `scene.ts` asks for them.

import { mix, type Rgb, ramp, scale, smoothstep } from "./colour.ts";
import { createNoise } from "./noise.ts";
import { createRaster, type Layer, setPixel } from "./raster.ts";
import type { ScenePlan } from "./scene-plan.ts";
import { paintStars } from "./sky.ts";

/** Deep space: a warped, many-coloured nebula with stars in front, the opaque back of the scene. */
export function paintNebula(plan: ScenePlan, speed: number): Layer {
  const { palette, short, frame } = plan;
  const noise = createNoise(plan.random.fork("nebula"));
  const raster = createRaster(plan.widthFor(speed), frame.height);
  const deep = scale(palette.sky[0] as Rgb, 0.45);
  const gas = ramp([deep, palette.sky[1] as Rgb, palette.sky[2] as Rgb, palette.glow]);
  const other = ramp([deep, palette.land[1] as Rgb, palette.land[0] as Rgb, palette.accent]);
  // Gas is soft, so it is computed on every second pixel and spread over four.
  for (let y = 0; y < raster.height; y += 2) {
    for (let x = 0; x < raster.width; x += 2) {
      const u = x / (short * 0.75);
      const v = y / (short * 0.75);
      const warpX = noise.fractal(u + 3.1, v + 7.7, 3);
      const warpY = noise.fractal(u + 11.9, v + 2.3, 3);
      const cloud = noise.fractal(u + warpX * 1.7, v + warpY * 1.7, 5);
      const lane = noise.ridged(u * 0.7 + warpY, v * 0.7 + warpX, 4);
      const amount = smoothstep(-0.35, 0.75, cloud + warpX * 0.5);
      const dust = smoothstep(0.45, 0.95, lane) * 0.6;
      const hue = smoothstep(-0.3, 0.3, warpY);
      const paint = mix(gas(amount * amount), other(amount * amount), hue);
      const dimmed = mix(paint, deep, dust * amount);
      for (let py = y; py < y + 2; py++) {
        for (let px = x; px < x + 2; px++) setPixel(raster, px, py, dimmed, 1);
      }
    }
  }
  const stars = { ...palette, stars: 1.2 };
  const field = { frame: { width: raster.width, height: frame.height }, palette: stars };
  paintStars(raster, { ...plan, ...field, horizon: frame.height * 1.6 });
  return { raster, top: 0, speed };
}

/** Place and size of a planet, in pixels of its own sheet. */
type Planet = {
  readonly x: number;
  readonly y: number;
  readonly radius: number;
  readonly ring: boolean;
};

/** A planet lit from one side, with bands of cloud, a rim of air and perhaps a ring. */
export function paintPlanet(plan: ScenePlan, planet: Planet, speed: number): Layer {
  const { palette, frame } = plan;
  const { x: centreX, y: centreY, radius } = planet;
  const random = plan.random.fork("planet");
  const noise = createNoise(random);
  const raster = createRaster(plan.widthFor(speed), frame.height);
  const bands = ramp([
    palette.land[2] as Rgb,
    palette.land[1] as Rgb,
    palette.sky[2] as Rgb,
    palette.cloudLit,
    palette.land[0] as Rgb,
  ]);
  const tilt = random.between(-0.5, 0.5);
  const sun = normalise([plan.light.x < frame.width / 2 ? -0.75 : 0.75, -0.5, 0.55]);
  const reach = radius * 2.4;
  const fromX = Math.max(0, Math.floor(centreX - reach));
  const toX = Math.min(raster.width - 1, Math.ceil(centreX + reach));
  for (let y = 0; y < raster.height; y++) {
    if (Math.abs(y - centreY) > reach) continue;
    for (let x = fromX; x <= toX; x++) {
      const u = (x - centreX) / radius;
      const v = (y - centreY) / radius;
      const across = u * Math.cos(tilt) + v * Math.sin(tilt);
      const up = v * Math.cos(tilt) - u * Math.sin(tilt);
      const distance = Math.hypot(u, v);
      const ring = planet.ring
        ? ringAt(across, up, noise.at(Math.hypot(across, up * 4) * 9, 1))
        : 0;
      const inFront = up > 0 || distance > 1;
      const cover = Math.min(Math.max((1 - distance) * radius + 0.5, 0), 1);
      if (cover > 0) {
        const z = Math.sqrt(Math.max(0, 1 - distance * distance));
        const day = Math.max(0, u * sun[0] + v * sun[1] + z * sun[2]);
        const swirl = noise.fractal(across * 2.2 + z, up * 6, 4) * 0.3;
        const ground = bands(0.5 + 0.42 * Math.sin(up * 8 + swirl * 6) + swirl);
        const lit = mix(scale(ground, 0.05), ground, day ** 0.8);
        const rim = (1 - z) ** 3 * (0.15 + day);
        const paint = mix(lit, palette.glow, Math.min(1, rim * 0.9));
        const shown = inFront && ring > 0 ? mix(paint, palette.cloudLit, ring * 0.8) : paint;
        setPixel(raster, x, y, shown, Math.max(cover, inFront ? ring : 0));
      } else {
        const air =
          Math.exp(-(distance - 1) * 16) * 0.4 * Math.max(0.1, u * sun[0] + v * sun[1] + 0.5);
        const paint = ring > 0 ? mix(palette.glow, palette.cloudLit, 0.5) : palette.glow;
        const alpha = Math.max(ring * 0.85, Math.min(air, 0.5));
        if (alpha > 0.004) setPixel(raster, x, y, paint, alpha);
      }
    }
  }
  return { raster, top: 0, speed };
}

/** How dense the ring is at a place in the plane of the planet's tilt: 0 to 1. */
function ringAt(across: number, up: number, grain: number): number {
  const far = Math.hypot(across, up * 4.2);
  const band = smoothstep(1.32, 1.4, far) * (1 - smoothstep(2.05, 2.2, far));
  const gap = 1 - 0.8 * Math.exp(-(((far - 1.78) / 0.03) ** 2));
  return Math.max(0, band * gap * (0.6 + grain * 0.55));
}

function normalise(vector: readonly [number, number, number]): Rgb {
  const length = Math.hypot(...vector);
  return [vector[0] / length, vector[1] / length, vector[2] / length];
}
