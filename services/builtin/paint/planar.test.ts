import { describe, expect, test } from "vitest";
import { createRandom } from "../seed.ts";
import { colourIn, createPicture, layOver, type Plane, toRgbBytes, toSheet } from "./planar.ts";
import { createRaster, type Layer } from "./raster.ts";
import { findRuns } from "./runs.ts";

/** A layer with opaque, empty and half-transparent stretches of many lengths. */
function patchwork(width: number, height: number): Layer {
  const random = createRandom("patchwork");
  const raster = createRaster(width, height);
  let alpha = 0;
  let left = 0;
  for (let i = 0; i < width * height; i++) {
    if (left-- <= 0) {
      alpha = random.pick([0, 255, random.below(256)]);
      left = random.pick([1, 5, 40, 400]);
    }
    raster.rgba.set([random.below(256), random.below(256), random.below(256), alpha], i * 4);
  }
  return { raster, top: 4, speed: 0 };
}

describe("layOver", () => {
  test.each([
    [0, 256],
    [14, 256],
    [30, 256],
    [99, 256],
    [7, 100],
    [7, 0],
  ])("at offset %i and opacity %i gives what blending each pixel would", (offset, opacity) => {
    const layer = patchwork(130, 40);
    const picture = createPicture({ width: 100, height: 50 }, "rgb");
    picture.data.fill(90);
    layOver(picture, toSheet(layer, "rgb"), offset, opacity);
    const shown = Math.min(offset, 30);
    const bytes = toRgbBytes(picture);
    for (let y = 0; y < 50; y++) {
      for (let x = 0; x < 100; x++) {
        const at = ((y - 4) * 130 + x + shown) * 4;
        const inside = y >= 4 && y < 44;
        const alpha = inside ? ((layer.raster.rgba[at + 3] ?? 0) * opacity) >> 8 : 0;
        const over = layer.raster.rgba[at] ?? 0;
        const wanted = Math.floor((90 * (255 - alpha) + over * alpha + 127) / 255);
        expect(bytes[(y * 100 + x) * 3]).toBe(wanted);
      }
    }
  });

  test("a layer that reaches below the frame is cut", () => {
    const picture = createPicture({ width: 100, height: 20 }, "yuv420");
    layOver(picture, toSheet(patchwork(100, 40), "yuv420"), 0);
    expect(picture.planes[1].data.some((value) => value > 0)).toBe(true);
  });
});

describe("findRuns", () => {
  test("leaves out what is empty and marks what is opaque", () => {
    const data = new Uint8Array(200);
    data.fill(255, 50, 100);
    data[140] = 7;
    const runs = findRuns({ data, width: 200, height: 1 });
    expect([...runs.starts]).toEqual([50, 140]);
    expect([...runs.ends]).toEqual([100, 141]);
    expect([...runs.opaque]).toEqual([1, 0]);
  });
});

describe("planes", () => {
  test("a flat colour is the same in every plane of a format", () => {
    const raster = createRaster(8, 6);
    for (let at = 0; at < raster.rgba.length; at += 4) raster.rgba.set([200, 100, 40, 255], at);
    const { planes } = toSheet({ raster, top: 0, speed: 0 }, "yuv420");
    const wanted = colourIn("yuv420", [200, 100, 40]);
    planes.forEach((plane: Plane, index) => {
      expect(plane.data.every((value) => Math.abs(value - (wanted[index] ?? 0)) <= 1)).toBe(true);
    });
    expect(planes[1]).toMatchObject({ width: 4, height: 3 });
  });

  test("white and black fill the range of television", () => {
    expect(colourIn("yuv420", [255, 255, 255]).map(Math.round)).toEqual([235, 128, 128]);
    expect(colourIn("yuv420", [0, 0, 0]).map(Math.round)).toEqual([16, 128, 128]);
  });
});
