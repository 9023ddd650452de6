// The pixels on which all painters paint, and the operations on single ones.

import type { Rgb } from "./colour.ts";

/** Straight-alpha RGBA pixels, four bytes each, row by row. */
export type Raster = {
  readonly width: number;
  readonly height: number;
  readonly rgba: Uint8Array;
};

/** The image's size in pixels. Both sides are even for video. */
export type FrameSize = { readonly width: number; readonly height: number };

/**
 * One sheet of a scene. It is at least as wide as the frame. A moving camera shows it from an offset that grows by `speed` (in short
 * sides of the frame a second), and nearer sheets move faster.
 */
export type Layer = {
  readonly raster: Raster;
  /** Frame row of the first raster row. It is even, so that video can halve it. */
  readonly top: number;
  readonly speed: number;
};

/** An all-transparent raster with sides rounded up to even numbers. */
export function createRaster(width: number, height: number): Raster {
  const evenWidth = Math.max(2, Math.ceil(width / 2) * 2);
  const evenHeight = Math.max(2, Math.ceil(height / 2) * 2);
  return {
    width: evenWidth,
    height: evenHeight,
    rgba: new Uint8Array(evenWidth * evenHeight * 4),
  };
}

/** A repeatable speck of noise in [-0.5, 0.5) for a pixel. Added before rounding, it keeps smooth gradients from showing bands. */
export function dither(x: number, y: number): number {
  let hash = Math.imul(x, 374761393) + Math.imul(y, 668265263);
  hash = Math.imul(hash ^ (hash >>> 13), 1274126177);
  return ((hash ^ (hash >>> 16)) >>> 8) / 16777216 - 0.5;
}

/** Sets one pixel, dithered. `alpha` is 0 to 1. */
export function setPixel(raster: Raster, x: number, y: number, colour: Rgb, alpha: number): void {
  const at = (y * raster.width + x) * 4;
  const speck = dither(x, y) + 0.5;
  raster.rgba[at] = clip(colour[0] + speck);
  raster.rgba[at + 1] = clip(colour[1] + speck);
  raster.rgba[at + 2] = clip(colour[2] + speck);
  raster.rgba[at + 3] = clip(alpha * 255 + 0.5);
}

/** Paints a colour over the present one. `alpha` is 0 to 1. */
export function blendPixel(raster: Raster, x: number, y: number, colour: Rgb, alpha: number): void {
  if (x < 0 || y < 0 || x >= raster.width || y >= raster.height || alpha <= 0) return;
  const at = (y * raster.width + x) * 4;
  const { rgba } = raster;
  const below = ((rgba[at + 3] as number) / 255) * (1 - alpha);
  const total = alpha + below;
  for (let channel = 0; channel < 3; channel++) {
    const old = rgba[at + channel] as number;
    rgba[at + channel] = clip(((colour[channel] as number) * alpha + old * below) / total + 0.5);
  }
  rgba[at + 3] = clip(total * 255 + 0.5);
}

/** Adds light to the present colour, and keeps its alpha. `strength` is 0 to 1 and above. */
export function addLight(raster: Raster, x: number, y: number, light: Rgb, strength: number): void {
  if (x < 0 || y < 0 || x >= raster.width || y >= raster.height) return;
  const at = (y * raster.width + x) * 4;
  const { rgba } = raster;
  for (let channel = 0; channel < 3; channel++) {
    const sum = (rgba[at + channel] as number) + (light[channel] as number) * strength;
    rgba[at + channel] = clip(sum + 0.5);
  }
}

function clip(value: number): number {
  return value <= 0 ? 0 : value >= 255 ? 255 : value | 0;
}
