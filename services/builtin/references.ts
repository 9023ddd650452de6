// Decodes the images that a caller gave as references, and fits them to the frame. Images and videos share it.

import { pictureLimits } from "./limits.ts";
import { mix, type Rgb, smoothstep } from "./paint/colour.ts";
import type { Palette } from "./paint/palettes.ts";
import { createRaster, type FrameSize, type Layer, type Raster, setPixel } from "./paint/raster.ts";
import { sharp } from "./sharp.ts";

/** How much of the scene's colours a reference takes on in a still image, 0 to 1. */
const GRADE = 0.24;

/**
 * Decodes a reference and fits it so that it covers `size`, cut evenly at its longer sides. Throws where the bytes cannot be decoded as
 * an image.
 */
export async function coverFit(reference: Uint8Array, size: FrameSize): Promise<Raster> {
  const raster = createRaster(size.width, size.height);
  const { data } = await sharp(reference, { limitInputPixels: pictureLimits.referencePixels })
    .rotate()
    .resize(raster.width, raster.height, { fit: "cover" })
    .toColourspace("srgb")
    .flatten({ background: "#808080" })
    .ensureAlpha()
    .raw()
    .toBuffer({ resolveWithObject: true });
  return { ...raster, rgba: new Uint8Array(data.buffer, data.byteOffset, data.byteLength) };
}

/** Joins references side by side with soft seams, graded to the palette, as a scene's background. */
export async function paintReferences(
  references: readonly Uint8Array[],
  frame: FrameSize,
  palette: Palette,
): Promise<Layer> {
  const raster = createRaster(frame.width, frame.height);
  const share = raster.width / references.length;
  // Neighbours overlap by a third of a share, where one fades into the other.
  const overlap = references.length > 1 ? share / 3 : 0;
  for (const [index, reference] of references.entries()) {
    const from = Math.max(0, Math.floor(index * share - overlap));
    const to = Math.min(raster.width, Math.ceil((index + 1) * share + overlap));
    const fitted = await coverFit(reference, { width: to - from, height: raster.height });
    for (let y = 0; y < raster.height; y++) {
      const fade = 0.96 - 0.3 * smoothstep(raster.height * 0.5, raster.height, y);
      for (let x = from; x < to; x++) {
        const at = (y * fitted.width + x - from) * 4;
        const pixel: Rgb = [
          fitted.rgba[at] as number,
          fitted.rgba[at + 1] as number,
          fitted.rgba[at + 2] as number,
        ];
        const seam = index === 0 ? 1 : smoothstep(from, from + overlap * 2, x);
        const paint = grade(pixel, palette);
        const to4 = (y * raster.width + x) * 4;
        const under: Rgb = [
          raster.rgba[to4] as number,
          raster.rgba[to4 + 1] as number,
          raster.rgba[to4 + 2] as number,
        ];
        setPixel(raster, x, y, mix(under, paint, seam), fade);
      }
    }
  }
  return { raster, top: 0, speed: 0 };
}

function grade(pixel: Rgb, palette: Palette): Rgb {
  const bright = (pixel[0] * 0.2126 + pixel[1] * 0.7152 + pixel[2] * 0.0722) / 255;
  const dark = mix(palette.land[3] as Rgb, palette.sky[1] as Rgb, Math.min(1, bright * 2));
  const tone = mix(dark, palette.glow, Math.max(0, bright * 2 - 1));
  return mix(pixel, tone, GRADE);
}
