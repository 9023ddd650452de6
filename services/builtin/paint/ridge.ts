// Paints the land below a line. Painters of land and of trees share it.

import type { Rgb } from "./colour.ts";
import { createRaster, type FrameSize, type Layer, setPixel } from "./raster.ts";

/** A sheet of land: everything below a line across the image. */
type RidgePlan = {
  readonly frame: FrameSize;
  /** Width of the sheet, at least the frame's. */
  readonly width: number;
  readonly speed: number;
  /** Frame row of the line at a column. Fractions are kept. */
  readonly line: (x: number) => number;
  /** Colour at a column and frame row. `depth` is the distance below the line in pixels. */
  readonly colour: (x: number, y: number, depth: number) => Rgb;
};

/** Samples of the line per column: enough for clean edges on steep slopes. */
const SUBCOLUMNS = 3;

/** Paints the land below a line with a clean edge. */
export function paintRidge(plan: RidgePlan): Layer {
  const { frame, width } = plan;
  const evenWidth = Math.ceil(width / 2) * 2;
  const line = new Float32Array(evenWidth * SUBCOLUMNS);
  let highest = frame.height;
  for (let i = 0; i < line.length; i++) {
    const row = plan.line((i + 0.5) / SUBCOLUMNS);
    line[i] = row;
    if (row < highest) highest = row;
  }
  const top = Math.min(Math.max(0, Math.floor((highest - 1) / 2) * 2), frame.height - 2);
  const raster = createRaster(evenWidth, frame.height - top);
  for (let x = 0; x < raster.width; x++) {
    const first = line[x * SUBCOLUMNS] as number;
    const middle = line[x * SUBCOLUMNS + 1] as number;
    const last = line[x * SUBCOLUMNS + 2] as number;
    const start = Math.max(0, Math.floor(Math.min(first, middle, last)) - top - 1);
    for (let row = start; row < raster.height; row++) {
      const y = top + row;
      const cover = (covered(y, first) + covered(y, middle) + covered(y, last)) / SUBCOLUMNS;
      if (cover > 0) setPixel(raster, x, row, plan.colour(x, y, Math.max(0, y - middle)), cover);
    }
  }
  return { raster, top, speed: plan.speed };
}

function covered(y: number, line: number): number {
  const share = y + 1 - line;
  return share <= 0 ? 0 : Math.min(share, 1);
}
