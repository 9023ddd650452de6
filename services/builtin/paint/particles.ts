// Paints what drifts through the air: snow, rain, birds. It moves in videos and stands still in images.

import type { Random } from "../seed.ts";
import { mix, type Rgb } from "./colour.ts";
import type { ParticleKind } from "./mood.ts";
import type { Palette } from "./palettes.ts";
import { colourIn, type Picture, type Plane } from "./planar.ts";
import type { FrameSize } from "./raster.ts";

/** Particles that drift through the air. A frame depends on its time alone, so any frame can be painted. */
export type Particles = {
  /** `opacity` is 0 to 1. */
  readonly paint: (picture: Picture, timeSeconds: number, opacity: number) => void;
};

type Speck = {
  readonly x: number;
  readonly y: number;
  readonly size: number;
  readonly phase: number;
  readonly pace: number;
};

/** The motion of each kind: short sides a second across and down, sway, size and number. */
type Drift = {
  readonly across: number;
  readonly down: number;
  readonly sway: number;
  readonly size: number;
  readonly count: number;
  readonly strength: number;
};

const DRIFTS: Record<Exclude<ParticleKind, "birds">, Drift> = {
  snow: { across: 0.03, down: 0.16, sway: 0.02, size: 0.0042, count: 150, strength: 0.85 },
  rain: { across: 0.12, down: 1.5, sway: 0, size: 0.0016, count: 150, strength: 0.55 },
  dust: { across: 0.03, down: -0.02, sway: 0.012, size: 0.0028, count: 46, strength: 0.5 },
  fireflies: { across: 0.02, down: -0.012, sway: 0.03, size: 0.0062, count: 42, strength: 0.9 },
  petals: { across: 0.1, down: 0.075, sway: 0.03, size: 0.0056, count: 44, strength: 0.85 },
};

/** Prepares the specks of a kind for a frame size. */
export function createParticles(
  kind: ParticleKind,
  frame: FrameSize,
  palette: Palette,
  random: Random,
): Particles {
  const short = Math.min(frame.width, frame.height);
  if (kind === "birds") return createBirds(frame, palette, random);
  const drift = DRIFTS[kind];
  const colour = speckColour(kind, palette);
  const count = Math.round((drift.count * frame.width * frame.height) / (short * short * 1.5));
  const specks = Array.from({ length: count }, () => createSpeck(random));
  const paint = (picture: Picture, timeSeconds: number, opacity: number): void => {
    const values = colourIn(picture.format, colour);
    for (const speck of specks) {
      const pace = 0.55 + speck.pace * 0.9;
      const near = 0.5 + speck.size ** 2 * 1.3;
      const sway = Math.sin(timeSeconds * (0.8 + pace) + speck.phase) * drift.sway * short;
      const x = wrap(
        speck.x * frame.width + drift.across * pace * near * short * timeSeconds,
        frame.width,
      );
      const y = wrap(
        speck.y * frame.height + drift.down * pace * near * short * timeSeconds,
        frame.height,
      );
      const blink =
        kind === "fireflies" ? 0.5 + 0.5 * Math.sin(timeSeconds * 2.4 * pace + speck.phase) : 1;
      const strength = drift.strength * (0.35 + 0.65 * speck.pace) * blink;
      const radius = Math.max(0.7, drift.size * near * short);
      const trail = kind === "rain" ? Math.round(short * 0.045 * near) : 0;
      for (let step = 0; step <= trail; step += 1) {
        const share = trail === 0 ? 1 : 0.5 * (1 - step / trail);
        const spot = { x: x + sway - step * 0.08, y: y - step, radius };
        paintSpot(picture, spot, values, strength * share * opacity);
      }
    }
  };
  return { paint };
}

function createSpeck(random: Random): Speck {
  return {
    x: random.next(),
    y: random.next(),
    size: random.next(),
    phase: random.next() * Math.PI * 2,
    pace: random.next(),
  };
}

function speckColour(kind: ParticleKind, palette: Palette): Rgb {
  if (kind === "snow") return [255, 255, 255];
  if (kind === "rain") return mix(palette.cloudLit, [255, 255, 255], 0.5);
  if (kind === "petals") return mix(palette.accent, [255, 190, 205], 0.65);
  if (kind === "dust") return mix(palette.light, palette.glow, 0.4);
  return palette.accent;
}

function wrap(value: number, size: number): number {
  const room = size * 1.1;
  return ((((value + size * 0.05) % room) + room) % room) - size * 0.05;
}

type Spot = { readonly x: number; readonly y: number; readonly radius: number };

function paintSpot(picture: Picture, spot: Spot, values: Rgb, strength: number): void {
  for (let index = 0; index < 3; index++) {
    const plane = picture.planes[index] as Plane;
    const scale = 1 << plane.shift;
    const radius = Math.max(0.6, spot.radius / scale);
    const reach = Math.ceil(radius * 1.9);
    const value = values[index] as number;
    const centreX = spot.x / scale;
    const centreY = spot.y / scale;
    for (let y = Math.floor(centreY) - reach; y <= centreY + reach; y++) {
      if (y < 0 || y >= plane.height) continue;
      for (let x = Math.floor(centreX) - reach; x <= centreX + reach; x++) {
        if (x < 0 || x >= plane.width) continue;
        const distance = ((x - centreX) ** 2 + (y - centreY) ** 2) / (radius * radius);
        const share = strength * Math.exp(-distance * 1.1);
        const at = y * plane.width + x;
        const under = plane.data[at] as number;
        plane.data[at] = under + (value - under) * share + 0.5;
      }
    }
  }
}

/** A loose flock that crosses the sky, each bird beating its wings. */
function createBirds(frame: FrameSize, palette: Palette, random: Random): Particles {
  const short = Math.min(frame.width, frame.height);
  const flock = Array.from({ length: 5 + random.below(6) }, () => createSpeck(random));
  const colour = mix(palette.land[3] as Rgb, palette.land[2] as Rgb, 0.3);
  const startX = random.between(0.1, 0.5) * frame.width;
  const startY = random.between(0.14, 0.3) * frame.height;
  const paint = (picture: Picture, timeSeconds: number, opacity: number): void => {
    const values = colourIn(picture.format, colour);
    for (const bird of flock) {
      const x = startX + (bird.x * 0.34 + timeSeconds * 0.045) * short * (1 + bird.pace * 0.1);
      const y =
        startY + (bird.y - 0.5) * 0.16 * short + Math.sin(timeSeconds + bird.phase) * short * 0.006;
      const span = short * (0.01 + bird.size * 0.009);
      const beat = Math.sin(timeSeconds * (6 + bird.pace * 3) + bird.phase);
      const steps = Math.max(4, Math.round(span));
      for (let step = -steps; step <= steps; step++) {
        const share = Math.abs(step) / steps;
        const wing = Math.sin(share * Math.PI * 0.8) * 0.55 - share * 0.2;
        const spot = {
          x: x + (step / steps) * span,
          y: y - wing * span * (0.35 + beat * 0.65),
          radius: Math.max(0.6, short * 0.0018 * (1.2 - share)),
        };
        paintSpot(picture, spot, values, 0.8 * opacity);
      }
    }
  };
  return { paint };
}
