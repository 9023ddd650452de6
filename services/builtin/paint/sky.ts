// Paints sky, stars, sun, moon and clouds. `scene.ts` asks for them.

import { mix, type Rgb, ramp, smoothstep } from "./colour.ts";
import { addLight, blendPixel, createRaster, type Layer, type Raster, setPixel } from "./raster.ts";
import type { Light, ScenePlan } from "./scene-plan.ts";

/** Paints the gradient, stars, and the sun or moon with its glow: the opaque back of a scene. */
export function paintSky(plan: ScenePlan): Layer {
  const { frame, palette, light, horizon, noise } = plan;
  const raster = createRaster(frame.width, frame.height);
  const short = Math.min(frame.width, frame.height);
  const colourAt = ramp(palette.sky);
  const wide = short * 0.55;
  const close = short * 0.12;
  for (let y = 0; y < raster.height; y++) {
    const base = colourAt(y / horizon);
    for (let x = 0; x < raster.width; x++) {
      const dx = x - light.x;
      const dy = (y - light.y) * 1.15;
      const distance = Math.sqrt(dx * dx + dy * dy);
      const drift = noise.at((x / short) * 1.4, (y / short) * 3) * 0.06;
      const glow = 0.5 * Math.exp(-distance / wide) + 0.42 * Math.exp(-distance / close) + drift;
      setPixel(raster, x, y, mix(base, palette.glow, Math.max(0, glow)), 1);
    }
  }
  paintStars(raster, plan);
  paintDisc(raster, light, palette.light);
  return { raster, top: 0, speed: 0 };
}

/** Sprinkles stars of many sizes, thinning out towards the horizon. */
export function paintStars(raster: Raster, plan: ScenePlan): void {
  const { palette, horizon, frame } = plan;
  const random = plan.random.fork("stars");
  const short = Math.min(frame.width, frame.height);
  const count = Math.round(((frame.width * horizon) / (short * short)) * 420 * palette.stars);
  const size = Math.max(0.6, short / 900);
  for (let i = 0; i < count; i++) {
    const x = random.next() * frame.width;
    const y = random.next() ** 1.4 * horizon;
    const bright = random.next() ** 5;
    const fade = 1 - smoothstep(0.5, 1, y / horizon);
    const tint = mix([255, 255, 255], palette.glow, random.next() * 0.5);
    softDot(raster, x, y, size * (0.7 + bright * 1.8), tint, fade * (0.25 + bright * 0.75));
  }
}

/** Adds a soft round spot of light. */
export function softDot(
  raster: Raster,
  x: number,
  y: number,
  radius: number,
  colour: Rgb,
  strength: number,
): void {
  const reach = Math.ceil(radius * 2.2);
  for (let py = Math.floor(y) - reach; py <= y + reach; py++) {
    for (let px = Math.floor(x) - reach; px <= x + reach; px++) {
      const distance = ((px - x) ** 2 + (py - y) ** 2) / (radius * radius);
      addLight(raster, px, py, colour, strength * Math.exp(-distance));
    }
  }
}

function paintDisc(raster: Raster, light: Light, colour: Rgb): void {
  const reach = Math.ceil(light.radius + 2);
  const top = Math.max(0, Math.floor(light.y - reach));
  const bottom = Math.min(raster.height - 1, Math.ceil(light.y + reach));
  for (let y = top; y <= bottom; y++) {
    for (let x = Math.floor(light.x - reach); x <= light.x + reach; x++) {
      const distance = Math.hypot(x - light.x, y - light.y);
      blendPixel(raster, x, y, colour, Math.min(Math.max(light.radius - distance + 0.5, 0), 1));
    }
  }
}

/** The share of the sky that the clouds take (0 to 1), and how stretched they are. */
type CloudShape = { readonly cover: number; readonly stretch: number };

/** Paints a translucent sheet of clouds, lit from the side of the light, `width` pixels wide. */
export function paintClouds(
  plan: ScenePlan,
  width: number,
  shape: CloudShape,
  speed: number,
): Layer {
  const { frame, palette, light, horizon, noise } = plan;
  const short = Math.min(frame.width, frame.height);
  const raster = createRaster(width, Math.min(frame.height, horizon + 2));
  // Clouds are soft, so every second pixel is computed and the rest is interpolated.
  const columns = (raster.width >> 1) + 1;
  const rows = (raster.height >> 1) + 1;
  const density = new Float32Array(columns * rows);
  const step = 2 / (short * 0.42);
  for (let row = 0; row < rows; row++) {
    const height = (row * 2) / horizon;
    const squeeze = shape.stretch * (0.7 + height * 1.6);
    const band = smoothstep(0, 0.25, height) * (1 - smoothstep(0.78, 1, height));
    for (let column = 0; column < columns; column++) {
      const bend = noise.at(column * step * 0.5 + 40, row * step * squeeze * 0.5) * 0.7;
      const puff = noise.fractal(column * step + bend, row * step * squeeze + bend, 5);
      density[row * columns + column] = (puff + 0.5 * band - (1 - shape.cover) * 0.75) * band;
    }
  }
  const at = (column: number, row: number): number =>
    density[
      Math.min(Math.max(row, 0), rows - 1) * columns + Math.min(Math.max(column, 0), columns - 1)
    ] as number;
  // One direction for the whole sheet. A change in its middle would show as a seam.
  const reach = Math.max(1, Math.round(short / 130));
  const lightX = light.x > frame.width / 2 ? reach : -reach;
  const lightY = light.y > horizon * 0.45 ? reach : -reach;
  for (let y = 0; y < raster.height; y++) {
    for (let x = 0; x < raster.width; x++) {
      const column = x >> 1;
      const row = y >> 1;
      const here = (at(column, row) + at(column + (x & 1), row + (y & 1))) * 0.5;
      const alpha = smoothstep(0.02, 0.34, here);
      if (alpha <= 0.004) continue;
      const towards = at(column + lightX, row + lightY);
      const lit = Math.min(Math.max(0.55 + (here - towards) * 2.6 - here * 0.5, 0), 1);
      setPixel(raster, x, y, mix(palette.cloudShade, palette.cloudLit, lit), alpha * 0.92);
    }
  }
  return { raster, top: 0, speed };
}
