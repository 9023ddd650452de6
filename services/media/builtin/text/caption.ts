import sharp from "sharp";
import { mix, type Rgb, smoothstep } from "../paint/colour.ts";
import type { Palette } from "../paint/palettes.ts";
import { createRaster, type FrameSize, type Layer, setPixel } from "../paint/raster.ts";
import { type FontBook, movePath, OUTLINE_SIZE } from "./fonts.ts";
import { breakLines, type TextBlock } from "./layout.ts";

/** Largest share of the frame's height that the text may take. */
const MAX_SHARE = 0.42;
const LINE_HEIGHT = 1.28;
/** Smallest letters in pixels that can still be read. */
const MIN_FONT_PIXELS = 9;

/** How dark the ground under the text gets, 0 to 1. */
const SCRIM_STRENGTH = 0.62;

/**
 * Sets a prompt as a caption in the lower part of the frame: large for few words, smaller for many,
 * on a ground that darkens gently, with a line of the palette's accent before it.
 */
export async function paintCaption(
  text: string,
  frame: FrameSize,
  palette: Palette,
  fonts: FontBook,
): Promise<Layer> {
  const short = Math.min(frame.width, frame.height);
  const margin = Math.max(4, Math.round(short * 0.06));
  const { block, fontSize } = chooseSize(text, frame, margin, fonts);
  const lineHeight = fontSize * LINE_HEIGHT;
  const textHeight = block.lines.length * lineHeight;
  const textTop = frame.height - margin - textHeight;
  const top = Math.max(0, Math.floor((textTop - textHeight * 0.5 - short * 0.16) / 2) * 2);
  const raster = createRaster(frame.width, frame.height - top);
  const bar = Math.max(2, Math.round(fontSize * 0.11));
  const inset = margin + bar + fontSize * 0.5;
  const paths = block.lines.map((line, index) => {
    const baseline = textTop - top + (index + 0.79) * lineHeight;
    return linePath(line, { x: inset, baseline, fontSize }, fonts);
  });
  const barTop = textTop - top + lineHeight * 0.1;
  const barHeight = textHeight - lineHeight * 0.18;
  const size = { width: raster.width, height: raster.height };
  const text8 = await maskOf(`<path fill="#fff" d="${paths.join(" ")}"/>`, size, 0);
  const shade8 = await maskOf(
    `<path fill="#fff" d="${paths.join(" ")}"/>`,
    size,
    Math.max(0.5, fontSize * 0.09),
  );
  const bar8 = await maskOf(
    `<rect fill="#fff" x="${margin}" y="${barTop}" width="${bar}" height="${barHeight}" rx="${bar / 2}"/>`,
    size,
    0,
  );
  const ink: Rgb = [255, 255, 255];
  const ground = mix(palette.land[3] as Rgb, [0, 0, 0], 0.55);
  for (let y = 0; y < raster.height; y++) {
    const scrim = SCRIM_STRENGTH * smoothstep(0, (textTop - top) * 1.25 + 1, y);
    for (let x = 0; x < raster.width; x++) {
      const at = y * raster.width + x;
      const letter = (text8[at] as number) / 255;
      const line = (bar8[at] as number) / 255;
      const shade = Math.max(scrim, ((shade8[at] as number) / 255) * 0.55 + scrim * 0.4);
      const over = Math.max(letter, line);
      const alpha = over + shade * (1 - over);
      if (alpha <= 0.002) continue;
      const paint = mix(ground, line > letter ? palette.accent : ink, over / alpha);
      setPixel(raster, x, y, paint, alpha);
    }
  }
  return { raster, top, speed: 0 };
}

function chooseSize(
  text: string,
  frame: FrameSize,
  margin: number,
  fonts: FontBook,
): { readonly block: TextBlock; readonly fontSize: number } {
  const short = Math.min(frame.width, frame.height);
  const room = (fontSize: number) => ({
    width: Math.max(fontSize * 2, frame.width - margin * 2 - fontSize * 0.7),
    fontSize,
    lineCount: Math.max(1, Math.floor((frame.height * MAX_SHARE) / (fontSize * LINE_HEIGHT))),
  });
  const sizes = [0.074, 0.06, 0.05, 0.042, 0.036, 0.031].map((share) => short * share);
  const limits = [2, 3, 4, 6, 9, Number.POSITIVE_INFINITY];
  for (const [index, wanted] of sizes.entries()) {
    const fontSize = Math.max(MIN_FONT_PIXELS, wanted);
    const block = breakLines(text, room(fontSize), fonts);
    const fits = !block.cut && block.lines.length <= (limits[index] as number);
    if (fits || index === sizes.length - 1) return { block, fontSize };
  }
  return { block: { lines: [], cut: false }, fontSize: MIN_FONT_PIXELS };
}

type LinePlace = { readonly x: number; readonly baseline: number; readonly fontSize: number };

function linePath(line: string, place: LinePlace, fonts: FontBook): string {
  const scale = place.fontSize / OUTLINE_SIZE;
  let x = place.x;
  const parts: string[] = [];
  for (const { segment } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(line)) {
    const glyph = fonts.glyph(segment);
    parts.push(movePath(glyph.path, scale, x, place.baseline));
    x += glyph.advance * scale;
  }
  return parts.join(" ");
}

/** Draws white shapes on black and gives the brightness of every pixel. */
async function maskOf(shapes: string, size: FrameSize, blur: number): Promise<Uint8Array> {
  const { width, height } = size;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}"><rect width="100%" height="100%" fill="#000"/>${shapes}</svg>`;
  const drawn = sharp(Buffer.from(svg));
  const soft = blur > 0.3 ? drawn.blur(blur) : drawn;
  return await soft.removeAlpha().toColourspace("b-w").raw().toBuffer();
}
