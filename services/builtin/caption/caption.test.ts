import { describe, expect, test } from "vitest";
import { tintedPalette } from "../paint/palettes.ts";
import type { Layer } from "../paint/raster.ts";
import { paintCaption } from "./caption.ts";

const palette = tintedPalette("noon", 0);

/** Share of the frame's pixels that are opaque and nearly white: the letters. */
function inkShare(layer: Layer, area: number): number {
  const { rgba } = layer.raster;
  let count = 0;
  for (let at = 0; at < rgba.length; at += 4) {
    const [r = 0, g = 0, b = 0, alpha = 0] = rgba.subarray(at, at + 4);
    if (r > 235 && g > 235 && b > 235 && alpha > 235) count++;
  }
  return count / area;
}

describe("paintCaption", () => {
  test("letters are white, opaque and differ with the text", async () => {
    const frame = { width: 640, height: 360 };
    const one = await paintCaption("A red fox", frame, palette);
    const other = await paintCaption("A grey owl", frame, palette);
    expect(inkShare(one, 640 * 360)).toBeGreaterThan(0.002);
    expect(one.raster.rgba).not.toEqual(other.raster.rgba);
    expect(one.top + one.raster.height).toBe(360);
  });

  test("a long prompt leaves most of the picture free", async () => {
    const frame = { width: 320, height: 240 };
    const layer = await paintCaption("word ".repeat(5000), frame, palette);
    expect(inkShare(layer, 320 * 240)).toBeGreaterThan(0.01);
    // The text takes at most 42 % of the height. Above it only the ground fades out.
    const untouched = layer.top / frame.height;
    expect(untouched).toBeGreaterThan(0.1);
  });

  test.each([
    [16, 16],
    [16, 512],
    [512, 16],
  ])("a frame of %i x %i is no trouble", async (width, height) => {
    const layer = await paintCaption("Hello, world 海 🌊", { width, height }, palette);
    expect(layer.raster.width).toBe(width);
    expect(layer.top + layer.raster.height).toBe(height);
  });
});
