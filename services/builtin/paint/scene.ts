// Plans a scene: which painter paints which layer, and in what order. `stage.ts` shows the layers.

import type { Random } from "../seed.ts";
import { paintBoat } from "./boat.ts";
import { paintHouses } from "./city.ts";
import { mix, type Rgb, turnHue } from "./colour.ts";
import { paintDune, paintHill, paintMountain, paintRibbon } from "./land.ts";
import type { Mood, SceneKind } from "./mood.ts";
import { createNoise } from "./noise.ts";
import { createParticles, type Particles } from "./particles.ts";
import type { FrameSize, Layer } from "./raster.ts";
import type { ScenePlan } from "./scene-plan.ts";
import { paintClouds, paintSky } from "./sky.ts";
import { paintNebula, paintPlanet } from "./space.ts";
import { paintFirs } from "./trees.ts";
import { createWater, type Water } from "./water.ts";

/**
 * The steps, from the back to the front. A layer is painted when it is needed, so that only one large raster is held at a time. It
 * gives the same pixels every time.
 */
type SceneStep =
  | { readonly kind: "layer"; readonly paint: () => Layer }
  | { readonly kind: "water"; readonly water: Water };

/** A planned scene: the layers in their order, and the particles in the air. */
export type Scene = { readonly steps: readonly SceneStep[]; readonly particles: Particles };

/** Speeds in short sides of the frame a second, from far to near. */
const CLOUD_SPEED = 0.012;
const FAR_SPEED = 0.025;
const MIDDLE_SPEED = 0.05;
const NEAR_SPEED = 0.1;
const FRONT_SPEED = 0.2;

/** Plans a scene. Its sheets are wide enough for a camera that travels for `durationSeconds` (0 for a still image). */
export function createScene(
  mood: Mood,
  frame: FrameSize,
  durationSeconds: number,
  random: Random,
): Scene {
  const short = Math.min(frame.width, frame.height);
  const place = random.fork("place");
  const horizon = even(frame.height * place.between(0.56, 0.64));
  const sunset = mood.palette.stars < 0.5;
  const light = {
    x: frame.width * place.between(0.28, 0.78),
    y: horizon * (sunset ? place.between(0.5, 0.86) : place.between(0.22, 0.45)),
    radius: short * place.between(0.034, 0.062),
  };
  const plan: ScenePlan = {
    frame,
    short,
    palette: mood.palette,
    light,
    horizon,
    random: random.fork(mood.scene),
    noise: createNoise(random.fork("sky noise")),
    // One pixel to spare on each side for rounding.
    widthFor: (speed) =>
      Math.ceil(frame.width + Math.abs(speed) * short * durationSeconds * 1.35 + 4),
  };
  const steps = BUILDERS[mood.scene](plan);
  const particles = createParticles(mood.particles, frame, mood.palette, random.fork("particles"));
  return { steps, particles };
}

const BUILDERS: Record<SceneKind, (plan: ScenePlan) => SceneStep[]> = {
  mountains: buildMountains,
  sea: buildSea,
  city: buildCity,
  forest: buildForest,
  desert: buildDesert,
  space: buildSpace,
  ribbons: buildRibbons,
  meadow: buildMeadow,
};

function buildMountains(plan: ScenePlan): SceneStep[] {
  const { horizon, short, frame } = plan;
  const lake = plan.random.next() < 0.6;
  const shore = even(horizon + (frame.height - horizon) * 0.2);
  const fold = (name: string, nearness: number, base: number, swing: number, speed: number) =>
    layer(() => paintMountain(plan, { name, nearness, base, swing: swing * short, speed }));
  const steps = [
    layer(() => paintSky(plan)),
    layer(() => clouds(plan, plan.random.between(0.35, 0.6), 2.4)),
    fold("far", 0.05, horizon - short * 0.02, 0.3, FAR_SPEED),
    fold("middle", 0.32, horizon + short * 0.03, 0.26, MIDDLE_SPEED),
  ];
  const firs = (name: string, nearness: number, base: number, tall: number, speed: number) => {
    const swing = short * 0.03;
    return layer(() => paintFirs(plan, { name, nearness, base, swing, speed }, short * tall, 1.2));
  };
  if (lake) {
    steps.push(firs("shore", 0.5, shore - short * 0.008, 0.07, MIDDLE_SPEED));
    steps.push(water(plan, shore, 0.12));
    steps.push(firs("front", 0.95, frame.height * 0.985, 0.24, FRONT_SPEED));
    return steps;
  }
  steps.push(fold("near", 0.55, horizon + (frame.height - horizon) * 0.42, 0.2, NEAR_SPEED));
  steps.push(firs("slope", 0.72, frame.height * 0.86, 0.13, NEAR_SPEED * 1.5));
  steps.push(firs("front", 1, frame.height * 1.0, 0.22, FRONT_SPEED));
  return steps;
}

function buildSea(plan: ScenePlan): SceneStep[] {
  const { horizon, short, frame, random } = plan;
  const island = { nearness: 0.22, base: horizon + 1, swing: short * 0.1, speed: FAR_SPEED };
  const steps = [
    layer(() => paintSky(plan)),
    layer(() => clouds(plan, random.between(0.4, 0.65), 2.8)),
    layer(() => paintMountain(plan, { ...island, name: "coast", swing: short * 0.085 })),
  ];
  steps.push(layer(() => paintBoat(plan, FAR_SPEED * 0.6)));
  steps.push(water(plan, horizon, random.between(0.6, 0.95)));
  if (random.next() < 0.35) {
    const cliff = { name: "cliff", nearness: 1, base: frame.height * 1.0, swing: short * 0.06 };
    steps.push(layer(() => paintFirs(plan, { ...cliff, speed: FRONT_SPEED }, short * 0.19, 1.4)));
  }
  return steps;
}

function buildCity(plan: ScenePlan): SceneStep[] {
  const { horizon, short, frame, random } = plan;
  const shore = even(horizon + (frame.height - horizon) * 0.3);
  const row = (name: string, nearness: number, base: number, tall: number, speed: number) =>
    layer(() => paintHouses(plan, { name, nearness, base, swing: 0, speed }, short * tall));
  return [
    layer(() => paintSky(plan)),
    layer(() => clouds(plan, random.between(0.3, 0.5), 2.2)),
    row("far", 0.08, shore, 0.34, FAR_SPEED),
    row("middle", 0.36, shore, 0.3, MIDDLE_SPEED),
    row("near", 0.7, shore, 0.22, NEAR_SPEED),
    water(plan, shore, 0.3),
  ];
}

function buildForest(plan: ScenePlan): SceneStep[] {
  const { horizon, short, frame } = plan;
  const row = (name: string, nearness: number, rise: number, tall: number, speed: number) => {
    const base = horizon + (frame.height - horizon) * rise;
    const fold = { name, nearness, base, swing: short * 0.05, speed };
    return layer(() => paintFirs(plan, fold, short * tall, 1.1));
  };
  const hill = { name: "hill", nearness: 0.05, base: horizon - short * 0.04, swing: short * 0.2 };
  return [
    layer(() => paintSky(plan)),
    layer(() => clouds(plan, 0.4, 2.6)),
    layer(() => paintMountain(plan, { ...hill, speed: FAR_SPEED })),
    row("5", 0.12, 0.02, 0.14, FAR_SPEED),
    row("4", 0.3, 0.2, 0.2, MIDDLE_SPEED),
    row("3", 0.52, 0.44, 0.27, NEAR_SPEED),
    row("2", 0.76, 0.74, 0.36, NEAR_SPEED * 1.5),
    row("1", 1, 1.08, 0.52, FRONT_SPEED),
  ];
}

function buildDesert(plan: ScenePlan): SceneStep[] {
  const { horizon, short, frame } = plan;
  const dune = (name: string, nearness: number, rise: number, swing: number, speed: number) => {
    const base = horizon + (frame.height - horizon) * rise;
    return layer(() => paintDune(plan, { name, nearness, base, swing: swing * short, speed }));
  };
  const rocks = { name: "rocks", nearness: 0.12, base: horizon + 4, swing: short * 0.12 };
  return [
    layer(() => paintSky(plan)),
    layer(() => clouds(plan, 0.3, 3.2)),
    layer(() => paintMountain(plan, { ...rocks, speed: FAR_SPEED })),
    dune("far", 0.1, 0.12, 0.09, MIDDLE_SPEED),
    dune("middle", 0.4, 0.36, 0.14, NEAR_SPEED),
    dune("near", 0.75, 0.66, 0.18, NEAR_SPEED * 1.5),
    dune("front", 1, 0.98, 0.16, FRONT_SPEED),
  ];
}

function buildSpace(plan: ScenePlan): SceneStep[] {
  const { frame, short, random } = plan;
  const planet = {
    x: frame.width * random.between(0.52, 0.8),
    y: frame.height * random.between(0.3, 0.45),
    radius: short * random.between(0.15, 0.25),
    ring: random.next() < 0.6,
  };
  const moon = {
    x: frame.width * random.between(0.16, 0.36),
    y: frame.height * random.between(0.16, 0.32),
    radius: short * random.between(0.03, 0.055),
    ring: false,
  };
  const ground = { name: "moonscape", nearness: 0.85, base: frame.height * 0.97 };
  return [
    layer(() => paintNebula(plan, CLOUD_SPEED)),
    layer(() => paintPlanet({ ...plan, random: random.fork("moon") }, moon, FAR_SPEED * 0.5)),
    layer(() => paintPlanet(plan, planet, FAR_SPEED)),
    layer(() => paintMountain(plan, { ...ground, swing: short * 0.14, speed: NEAR_SPEED })),
  ];
}

function buildRibbons(plan: ScenePlan): SceneStep[] {
  const { frame, short, palette, random } = plan;
  const stops = [...palette.sky, ...palette.land, palette.glow];
  const steps = [layer(() => paintSky({ ...plan, horizon: frame.height }))];
  const count = 6;
  for (let i = 0; i < count; i++) {
    const nearness = i / (count - 1);
    const base = frame.height * (0.26 + 0.7 * nearness);
    const crest = turnHue(random.pick(stops), random.between(-24, 24));
    const foot = mix(palette.land[3] as Rgb, palette.sky[1] as Rgb, random.next() * 0.6);
    const speed = (i % 2 === 0 ? 1 : -1) * (FAR_SPEED + nearness * NEAR_SPEED);
    const fold = { name: `ribbon ${i}`, nearness, base, swing: short * 0.13, speed };
    steps.push(layer(() => paintRibbon(plan, fold, [mix(crest, palette.glow, 0.35), foot])));
  }
  return steps;
}

function buildMeadow(plan: ScenePlan): SceneStep[] {
  const { horizon, short, frame, random } = plan;
  const hill = (name: string, nearness: number, rise: number, swing: number, speed: number) => {
    const base = horizon + (frame.height - horizon) * rise;
    return layer(() => paintHill(plan, { name, nearness, base, swing: swing * short, speed }));
  };
  const far = { name: "alps", nearness: 0.04, base: horizon - 2, swing: short * 0.2 };
  const grove = {
    name: "grove",
    nearness: 0.42,
    base: horizon + short * 0.03,
    swing: short * 0.02,
  };
  return [
    layer(() => paintSky(plan)),
    layer(() => clouds(plan, random.between(0.45, 0.65), 2)),
    layer(() => paintMountain(plan, { ...far, speed: FAR_SPEED })),
    hill("far", 0.15, 0.02, 0.07, FAR_SPEED),
    layer(() => paintFirs(plan, { ...grove, speed: MIDDLE_SPEED }, short * 0.06, 0.7)),
    hill("middle", 0.4, 0.3, 0.1, MIDDLE_SPEED),
    hill("near", 0.7, 0.62, 0.1, NEAR_SPEED),
    hill("front", 1, 0.96, 0.09, FRONT_SPEED),
  ];
}

function clouds(plan: ScenePlan, cover: number, stretch: number): Layer {
  return paintClouds(plan, plan.widthFor(CLOUD_SPEED), { cover, stretch }, CLOUD_SPEED);
}

function layer(paint: () => Layer): SceneStep {
  return { kind: "layer", paint };
}

function water(plan: ScenePlan, shore: number, roughness: number): SceneStep {
  return {
    kind: "water",
    water: createWater(shore, roughness, plan.palette, plan.light, plan.random.fork("water")),
  };
}

function even(value: number): number {
  return Math.round(value / 2) * 2;
}
