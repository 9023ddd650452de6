// Shows a planned scene at any moment. An image has one moment, and a video many.

import type { Checkpoint } from "../worker.ts";
import type { Particles } from "./particles.ts";
import { layOver, type Picture, type PixelFormat, type Sheet, toSheet } from "./planar.ts";
import type { Scene } from "./scene.ts";
import type { Water } from "./water.ts";

/** A scene that is ready to be shown. Any moment of it can be painted into an image. */
export type Stage = {
  readonly paint: (picture: Picture, frameIndex: number) => void;
};

type Part = { readonly sheet: Sheet; readonly pixelsPerFrame: number } | { readonly water: Water };

/** Below this many pixels a frame, a sheet moves by fractions. Above, it moves by whole pixels. */
const WHOLE_PIXELS_FROM = 0.75;

/**
 * Prepares a scene for a pixel format. Sheets that move visibly do so by whole pixels a frame. That looks even, and the video encoder
 * follows it easily.
 */
export function createStage(
  scene: Scene,
  format: PixelFormat,
  short: number,
  framesPerSecond: number,
  checkpoint: Checkpoint,
): Stage {
  const parts = scene.steps.map((step): Part => {
    if (step.kind === "water") return { water: step.water };
    checkpoint();
    const layer = step.paint();
    const exact = (Math.abs(layer.speed) * short) / framesPerSecond;
    const pixelsPerFrame = exact >= WHOLE_PIXELS_FROM ? Math.round(exact) : exact;
    return {
      sheet: toSheet(layer, format),
      pixelsPerFrame: layer.speed < 0 ? -pixelsPerFrame : pixelsPerFrame,
    };
  });
  const particles: Particles = scene.particles;
  const paint = (picture: Picture, frameIndex: number): void => {
    const timeSeconds = frameIndex / framesPerSecond;
    for (const part of parts) {
      if ("water" in part) part.water.paint(picture, timeSeconds);
      else layOver(picture, part.sheet, offsetOf(part, picture.width, frameIndex));
    }
    particles.paint(picture, timeSeconds, 1);
  };
  return { paint };
}

function offsetOf(
  part: { readonly sheet: Sheet; readonly pixelsPerFrame: number },
  width: number,
  frameIndex: number,
): number {
  const moved = Math.floor(Math.abs(part.pixelsPerFrame) * frameIndex);
  if (part.pixelsPerFrame >= 0) return moved;
  return Math.max(0, part.sheet.planes[0].width - width - moved);
}
