// Joins painted layers into one image of separate colour planes. So images and frames of videos share the code for it.

import type { Rgb } from "./colour.ts";
import type { FrameSize, Layer, Raster } from "./raster.ts";
import { findRuns, type Runs } from "./runs.ts";

/** `rgb`: three full planes for still images. `yuv420`: BT.709 limited range for video. */
export type PixelFormat = "rgb" | "yuv420";

/** One colour plane. `shift` 1: half the image's width and height. */
export type Plane = {
  readonly data: Uint8Array;
  readonly width: number;
  readonly height: number;
  readonly shift: 0 | 1;
};

export type Planes = readonly [Plane, Plane, Plane];

/** An image as separate planes, so that stills and video frames share one compositor. */
export type Picture = FrameSize & { readonly format: PixelFormat; readonly planes: Planes };

/** A layer in planes, with its opacity at each plane's size and the places where that needs no blending. */
export type Sheet = {
  readonly planes: Planes;
  readonly alphas: Planes;
  readonly runs: readonly [Runs, Runs, Runs];
  readonly top: number;
  readonly speed: number;
};

/** The planes of a frame are one block, in the order that encoders expect. `data` is that block. */
export function createPicture(
  size: FrameSize,
  format: PixelFormat,
): Picture & { readonly data: Uint8Array } {
  const { width, height } = size;
  const shift = format === "rgb" ? 0 : 1;
  const full = width * height;
  const part = (width >> shift) * (height >> shift);
  const data = new Uint8Array(full + part * 2);
  const plane = (from: number, to: number, by: 0 | 1): Plane => ({
    data: data.subarray(from, to),
    width: width >> by,
    height: height >> by,
    shift: by,
  });
  const planes: Planes = [
    plane(0, full, 0),
    plane(full, full + part, shift),
    plane(full + part, full + part * 2, shift),
  ];
  return { width, height, format, planes, data };
}

/** A colour's three values in the planes of a format. */
export function colourIn(format: PixelFormat, colour: Rgb): Rgb {
  if (format === "rgb") return colour;
  const [r, g, b] = colour;
  return [
    16 + 0.1826 * r + 0.6142 * g + 0.062 * b,
    128 - 0.1006 * r - 0.3386 * g + 0.4392 * b,
    128 + 0.4392 * r - 0.3989 * g - 0.0403 * b,
  ];
}

/** Converts a painted layer once, so that every frame only copies and blends bytes. */
export function toSheet(layer: Layer, format: PixelFormat): Sheet {
  const { raster } = layer;
  const alpha = alphaPlane(raster);
  const planes = toPlanes(raster, format);
  const small = format === "rgb" ? alpha : halved(alpha);
  const alphas: Planes = [alpha, small, small];
  const runs = findRuns(alpha);
  const smallRuns = format === "rgb" ? runs : findRuns(small);
  return {
    planes,
    alphas,
    runs: [runs, smallRuns, smallRuns],
    top: layer.top,
    speed: layer.speed,
  };
}

/** The colour planes of a raster of any opacity. Sides must be even for `yuv420`. */
export function toPlanes(raster: Raster, format: PixelFormat): Planes {
  const { width, height, rgba } = raster;
  const shift = format === "rgb" ? 0 : 1;
  const picture = createPicture(raster, format);
  const [first, second, third] = picture.planes;
  if (format === "rgb") {
    for (let i = 0, at = 0; i < first.data.length; i++, at += 4) {
      first.data[i] = rgba[at] as number;
      second.data[i] = rgba[at + 1] as number;
      third.data[i] = rgba[at + 2] as number;
    }
    return picture.planes;
  }
  for (let i = 0, at = 0; i < first.data.length; i++, at += 4) {
    const r = rgba[at] as number;
    const g = rgba[at + 1] as number;
    const b = rgba[at + 2] as number;
    first.data[i] = 16.5 + 0.1826 * r + 0.6142 * g + 0.062 * b;
  }
  const columns = width >> shift;
  for (let y = 0; y < height >> shift; y++) {
    for (let x = 0; x < columns; x++) {
      const [r, g, b] = blockColour(rgba, (y * 2 * width + x * 2) * 4, width * 4);
      second.data[y * columns + x] = 128.5 - 0.1006 * r - 0.3386 * g + 0.4392 * b;
      third.data[y * columns + x] = 128.5 + 0.4392 * r - 0.3989 * g - 0.0403 * b;
    }
  }
  return picture.planes;
}

/** Mean colour of two by two pixels. Transparent ones count little. */
function blockColour(rgba: Uint8Array, at: number, stride: number): Rgb {
  let r = 0;
  let g = 0;
  let b = 0;
  let total = 0;
  for (let corner = 0; corner < 4; corner++) {
    const from = at + (corner & 1) * 4 + (corner >> 1) * stride;
    const weight = (rgba[from + 3] as number) + 1;
    r += (rgba[from] as number) * weight;
    g += (rgba[from + 1] as number) * weight;
    b += (rgba[from + 2] as number) * weight;
    total += weight;
  }
  return [r / total, g / total, b / total];
}

function alphaPlane(raster: Raster): Plane {
  const data = new Uint8Array(raster.width * raster.height);
  for (let i = 0; i < data.length; i++) data[i] = raster.rgba[i * 4 + 3] as number;
  return { data, width: raster.width, height: raster.height, shift: 0 };
}

function halved(plane: Plane): Plane {
  const width = plane.width >> 1;
  const height = plane.height >> 1;
  const data = new Uint8Array(width * height);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const at = y * 2 * plane.width + x * 2;
      const upper = (plane.data[at] as number) + (plane.data[at + 1] as number);
      const below = at + plane.width;
      const lower = (plane.data[below] as number) + (plane.data[below + 1] as number);
      data[y * width + x] = (upper + lower + 2) >> 2;
    }
  }
  return { data, width, height, shift: 1 };
}

/** Lays a sheet over the image, beginning at column `offset` of the sheet. `opacity` is 0 to 256. */
export function layOver(picture: Picture, sheet: Sheet, offset: number, opacity = 256): void {
  for (let index = 0; index < 3; index++) {
    const to = picture.planes[index] as Plane;
    const from = sheet.planes[index] as Plane;
    const alpha = (sheet.alphas[index] as Plane).data;
    const runs = sheet.runs[index] as Runs;
    const start = Math.max(0, Math.min(offset >> to.shift, from.width - to.width));
    const top = sheet.top >> to.shift;
    const rows = Math.min(from.height, to.height - top);
    for (let row = 0; row < rows; row++) {
      const last = runs.rows[row + 1] as number;
      for (let run = runs.rows[row] as number; run < last; run++) {
        const left = Math.max(runs.starts[run] as number, start);
        const right = Math.min(runs.ends[run] as number, start + to.width);
        if (left >= right) continue;
        const source = row * from.width + left;
        const target = (row + top) * to.width + left - start;
        if (runs.opaque[run] === 1 && opacity === 256) {
          to.data.set(from.data.subarray(source, source + right - left), target);
        } else {
          blendRow(to.data, target, from.data, alpha, source, right - left, opacity);
        }
      }
    }
  }
}

function blendRow(
  to: Uint8Array,
  target: number,
  from: Uint8Array,
  alpha: Uint8Array,
  source: number,
  count: number,
  opacity: number,
): void {
  for (let i = 0; i < count; i++) {
    const share = ((alpha[source + i] as number) * opacity) >> 8;
    const under = to[target + i] as number;
    const over = from[source + i] as number;
    // Dividing by 255 as a product: exact for all values that occur.
    const sum = under * (255 - share) + over * share + 127;
    to[target + i] = ((sum + 1 + (sum >> 8)) >> 8) & 255;
  }
}

/** Interleaves the planes of an `rgb` image, three bytes a pixel. */
export function toRgbBytes(picture: Picture): Uint8Array {
  const [red, green, blue] = picture.planes;
  const bytes = new Uint8Array(red.data.length * 3);
  for (let i = 0, at = 0; i < red.data.length; i++, at += 3) {
    bytes[at] = red.data[i] as number;
    bytes[at + 1] = green.data[i] as number;
    bytes[at + 2] = blue.data[i] as number;
  }
  return bytes;
}
