// Makes a video of reference images, with a camera that moves. Videos without references are painted scenes: `video.ts`
// chooses.

import { smoothstep } from "../paint/colour.ts";
import { createNoise } from "../paint/noise.ts";
import type { Particles } from "../paint/particles.ts";
import { createPicture, type Picture, type Plane, type Planes, toPlanes } from "../paint/planar.ts";
import type { FrameSize } from "../paint/raster.ts";
import { coverFit } from "../references.ts";
import type { Random } from "../seed.ts";
import type { Checkpoint } from "../worker.ts";

/** Paints frame `index` of a video into an image. */
export type Reel = { readonly paint: (picture: Picture, index: number) => void };

/** References are kept this much larger than the frame, so that zooming in stays sharp. */
const SPARE = 1.2;
/** How far the camera zooms in on an image, as a factor. */
const ZOOM = 1.17;
/** Brightness that the passing light adds at most. */
const SWEEP_LIGHT = 20;

/** The camera's view: a factor of enlargement, and a shift in shares of the spare room. */
type View = { readonly zoom: number; readonly panX: number; readonly panY: number };

/** The parts of a reel of references. */
type ReelPlan = {
  readonly references: readonly Uint8Array[];
  readonly frame: FrameSize;
  readonly frameCount: number;
  readonly framesPerSecond: number;
  readonly particles: Particles;
  readonly random: Random;
  readonly checkpoint: Checkpoint;
};

/**
 * Animates references. The first frame is exactly the first reference, then the camera moves in. Where there are several, each
 * dissolves into the next, and the last frame is exactly the last reference.
 */
export async function createReel(plan: ReelPlan): Promise<Reel> {
  const { frame, frameCount, random } = plan;
  const large = { width: even(frame.width * SPARE), height: even(frame.height * SPARE) };
  const shots: Planes[] = [];
  for (const reference of plan.references) {
    plan.checkpoint();
    shots.push(toPlanes(await coverFit(reference, large), "yuv420"));
  }
  const pans = shots.map(() => ({
    panX: random.between(-0.8, 0.8),
    panY: random.between(-0.6, 0.6),
  }));
  const other = createPicture(frame, "yuv420");
  const threshold = dissolveMap(frame, random);
  const last = Math.max(1, frameCount - 1);
  const paint = (picture: Picture, index: number): void => {
    const along = index / last;
    const between = shots.length - 1;
    const at = Math.min(Math.floor(along * between), Math.max(0, between - 1));
    const local = between === 0 ? along : along * between - at;
    const pan = (shot: number) => pans[shot] as { panX: number; panY: number };
    const zoomIn = {
      zoom: 1 + (ZOOM - 1) * smoothstep(-0.1, 1.1, local) - zoomStart(),
      ...pan(at),
    };
    project(shots[at] as Planes, picture, local === 0 ? STILL : zoomIn);
    if (between > 0) {
      const share = smoothstep(0.25, 0.8, local);
      if (share > 0) {
        const zoom = 1 + (ZOOM - 1) * (1 - smoothstep(0, 1, local));
        project(shots[at + 1] as Planes, other, { zoom, ...pan(at + 1) });
        dissolve(picture, other, threshold, share);
      }
    }
    const calm = Math.sin(Math.PI * along);
    sweep(picture, along * 1.6 - 0.3, calm * SWEEP_LIGHT);
    const fadeIn = Math.min(1, along * 6);
    const fadeOut = between > 0 ? Math.min(1, (1 - along) * 6) : 1;
    plan.particles.paint(picture, index / plan.framesPerSecond, Math.min(fadeIn, fadeOut));
  };
  return { paint };
}

const STILL: View = { zoom: 1, panX: 0, panY: 0 };

/** The easing of the zoom has already begun a little at the start. This subtracts that part. */
function zoomStart(): number {
  return (ZOOM - 1) * smoothstep(-0.1, 1.1, 0);
}

/** Samples the large planes through a view, in fixed point, mixing the four nearest pixels. */
function project(from: Planes, to: Picture, view: View): void {
  for (let index = 0; index < 3; index++) {
    projectPlane(from[index] as Plane, to.planes[index] as Plane, view);
  }
}

function projectPlane(from: Plane, to: Plane, view: View): void {
  const spanX = from.width / view.zoom;
  const spanY = from.height / view.zoom;
  const startX = (from.width - spanX) * 0.5 * (1 + view.panX);
  const startY = (from.height - spanY) * 0.5 * (1 + view.panY);
  // All rows read the same columns: the start of each, and its share of the next.
  const columns = new Int32Array(to.width);
  const shares = new Int32Array(to.width);
  for (let x = 0; x < to.width; x++) {
    const source = clamp(startX + ((x + 0.5) * spanX) / to.width - 0.5, from.width - 1.001);
    columns[x] = Math.floor(source);
    shares[x] = Math.floor((source % 1) * 256);
  }
  for (let y = 0; y < to.height; y++) {
    const source = clamp(startY + ((y + 0.5) * spanY) / to.height - 0.5, from.height - 1.001);
    const upper = Math.floor(source) * from.width;
    const share = Math.floor((source % 1) * 256);
    projectRow(from, to, columns, shares, upper | 0, share | 0, (y * to.width) | 0);
  }
}

function projectRow(
  from: Plane,
  to: Plane,
  columns: Int32Array,
  shares: Int32Array,
  upper: number,
  share: number,
  target: number,
): void {
  const source = from.data;
  const output = to.data;
  const lower = (upper + from.width) | 0;
  const width = columns.length;
  for (let x = 0; x < width; x++) {
    const column = columns[x] as number;
    const part = shares[x] as number;
    const a = source[upper + column] as number;
    const b = source[upper + column + 1] as number;
    const c = source[lower + column] as number;
    const d = source[lower + column + 1] as number;
    const top = ((a << 8) + Math.imul(b - a, part)) | 0;
    const bottom = ((c << 8) + Math.imul(d - c, part)) | 0;
    output[target + x] = ((top << 8) + Math.imul(bottom - top, share) + 32768) >> 16;
  }
}

function clamp(value: number, highest: number): number {
  return Math.min(Math.max(value, 0), highest);
}

/** Mixes `next` over `picture`. Places with a low threshold change first. */
function dissolve(picture: Picture, next: Picture, threshold: Picture, share: number): void {
  const opacity = new Uint16Array(256);
  for (let value = 0; value < 256; value++) {
    const mark = value / 255;
    opacity[value] = Math.round(256 * smoothstep(mark * 0.7, mark * 0.7 + 0.3, share));
  }
  for (let index = 0; index < 3; index++) {
    const to = (picture.planes[index] as Plane).data;
    const from = (next.planes[index] as Plane).data;
    const marks = (threshold.planes[index] as Plane).data;
    for (let i = 0; i < to.length; i++) {
      const part = opacity[marks[i] as number] as number;
      const under = to[i] as number;
      to[i] = under + ((((from[i] as number) - under) * part) >> 8);
    }
  }
}

/** When each place changes: clouds of noise that move across the frame. */
function dissolveMap(frame: FrameSize, random: Random): Picture {
  const noise = createNoise(random.fork("dissolve"));
  const picture = createPicture(frame, "yuv420");
  const short = Math.min(frame.width, frame.height);
  for (const plane of picture.planes) {
    const scale = 1 << plane.shift;
    for (let y = 0; y < plane.height; y++) {
      for (let x = 0; x < plane.width; x++) {
        const u = (x * scale) / short;
        const v = (y * scale) / short;
        const wave = noise.fractal(u * 1.6, v * 1.6, 3) * 0.9 + (x / plane.width - 0.5) * 0.5;
        plane.data[y * plane.width + x] = Math.min(Math.max((wave + 0.5) * 255, 0), 255);
      }
    }
  }
  return picture;
}

/** A soft band of light that passes over the image. `position` 0 is its left edge, 1 its right edge. */
function sweep(picture: Picture, position: number, strength: number): void {
  const { data, width, height } = picture.planes[0];
  const length = width + (height >> 1);
  const band = new Uint8Array(length);
  for (let i = 0; i < length; i++) {
    const distance = (i / length - position) / 0.16;
    band[i] = Math.round(strength * Math.exp(-distance * distance));
  }
  for (let y = 0; y < height; y++) {
    const lean = y >> 1;
    const row = y * width;
    for (let x = 0; x < width; x++) {
      const sum = (data[row + x] as number) + (band[x + lean] as number);
      data[row + x] = sum > 235 ? Math.max(235, data[row + x] as number) : sum;
    }
  }
}

function even(value: number): number {
  return Math.ceil(value / 2) * 2;
}
