// Paints the prompt as a caption onto images and videos. `layout.ts` breaks its lines, and `fonts.ts` has the letters.

import { mix, type Rgb, smoothstep } from "../paint/colour.ts";
import type { Palette } from "../paint/palettes.ts";
import { createRaster, type FrameSize, type Layer } from "../paint/raster.ts";
import { sharp } from "../sharp.ts";
import { glyphOf, movePath, OUTLINE_SIZE } from "./fonts.ts";
import { breakLines, type TextBlock } from "./layout.ts";

/** Largest share of the frame's height that the text may take. */
const MAX_SHARE = 0.42;
const LINE_HEIGHT = 1.28;
/** Smallest letters in pixels that can still be read. */
const MIN_FONT_PIXELS = 9;
/** Sizes of letters in short sides of the frame, largest first, and the most lines that are set in each. */
const SIZES = [
  [0.074, 2],
  [0.06, 3],
  [0.05, 4],
  [0.042, 6],
  [0.036, 9],
  [0.031, Number.POSITIVE_INFINITY],
] as const;

/** How dark the ground under the text gets, and how dark the letters' shadows on it are, 0 to 1. */
const SCRIM_STRENGTH = 0.62;
const SHADOW_STRENGTH = 0.47;
/** Colours between which the ground darkens evenly: enough of them make a soft curve. */
const SCRIM_STOPS = 16;

/**
 * Sets a prompt as a caption in the lower part of the frame. The letters are large for few words, smaller for many. The ground behind
 * them darkens gently, and a line of the palette's accent comes before them.
 */
export async function paintCaption(
  text: string,
  frame: FrameSize,
  palette: Palette,
): Promise<Layer> {
  const short = Math.min(frame.width, frame.height);
  const margin = Math.max(4, Math.round(short * 0.06));
  const { block, fontSize } = chooseSize(text, frame, margin);
  const lineHeight = fontSize * LINE_HEIGHT;
  const textHeight = block.lines.length * lineHeight;
  const textTop = frame.height - margin - textHeight;
  const top = Math.max(0, Math.floor((textTop - textHeight * 0.5 - short * 0.16) / 2) * 2);
  const { width, height } = createRaster(frame.width, frame.height - top);
  const bar = Math.max(2, Math.round(fontSize * 0.11));
  const letters = block.lines.map((line, index) => {
    const baseline = textTop - top + (index + 0.79) * lineHeight;
    return linePath(line, { x: margin + bar + fontSize * 0.5, baseline, fontSize });
  });
  const barTop = textTop - top + lineHeight * 0.1;
  const barHeight = Math.max(0, textHeight - lineHeight * 0.18);
  const ground = css(mix(palette.land[3] as Rgb, [0, 0, 0], 0.55));
  const darkAt = (textTop - top) * 1.25 + 1;
  const stops = Array.from({ length: SCRIM_STOPS + 1 }, (_, index) => {
    const strength = SCRIM_STRENGTH * smoothstep(0, SCRIM_STOPS, index);
    return `<stop offset="${index / SCRIM_STOPS}" stop-color="${ground}" stop-opacity="${strength}"/>`;
  });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">
    <linearGradient id="scrim" gradientUnits="userSpaceOnUse" x2="0" y2="${darkAt}">${stops.join("")}</linearGradient>
    <filter id="soft"><feGaussianBlur stdDeviation="${Math.max(0.5, fontSize * 0.09)}"/></filter>
    <defs><path id="letters" d="${letters.join(" ")}"/></defs>
    <rect width="${width}" height="${height}" fill="url(#scrim)"/>
    <use href="#letters" fill="${ground}" opacity="${SHADOW_STRENGTH}" filter="url(#soft)"/>
    <use href="#letters" fill="#fff"/>
    <rect x="${margin}" y="${barTop}" width="${bar}" height="${barHeight}" rx="${bar / 2}" fill="${css(palette.accent)}"/>
  </svg>`;
  const rgba = await sharp(Buffer.from(svg)).toColourspace("srgb").ensureAlpha().raw().toBuffer();
  return { raster: { width, height, rgba }, top, speed: 0 };
}

function css([r, g, b]: Rgb): string {
  return `rgb(${Math.round(r)},${Math.round(g)},${Math.round(b)})`;
}

function chooseSize(
  text: string,
  frame: FrameSize,
  margin: number,
): { readonly block: TextBlock; readonly fontSize: number } {
  const short = Math.min(frame.width, frame.height);
  let fontSize = 0;
  let block: TextBlock = { lines: [], cut: false };
  for (const [share, mostLines] of SIZES) {
    fontSize = Math.max(MIN_FONT_PIXELS, short * share);
    const width = Math.max(fontSize * 2, frame.width - margin * 2 - fontSize * 0.7);
    const room = Math.floor((frame.height * MAX_SHARE) / (fontSize * LINE_HEIGHT));
    block = breakLines(text, { width, fontSize, lineCount: Math.max(1, room) });
    if (!block.cut && block.lines.length <= mostLines) break;
  }
  return { block, fontSize };
}

type LinePlace = { readonly x: number; readonly baseline: number; readonly fontSize: number };

function linePath(line: string, place: LinePlace): string {
  const scale = place.fontSize / OUTLINE_SIZE;
  let x = place.x;
  const parts: string[] = [];
  for (const { segment } of new Intl.Segmenter("en", { granularity: "grapheme" }).segment(line)) {
    const glyph = glyphOf(segment);
    parts.push(movePath(glyph.path, scale, x, place.baseline));
    x += glyph.advance * scale;
  }
  return parts.join(" ");
}
