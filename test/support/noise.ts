import sharp, { type Sharp } from "sharp";

/** A picture that does not shrink. */
export function noise(width: number, height: number): Sharp {
  const pixels = Buffer.alloc(width * height * 3);
  for (let at = 0, seed = 1; at < pixels.length; at++) {
    seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31;
    pixels[at] = seed >> 16;
  }
  return sharp(pixels, { raw: { width, height, channels: 3 } });
}
