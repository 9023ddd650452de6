// Finds the outlines of letters in the fonts that are installed with genmesh, so that a caption looks the same on every
// machine.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import opentype from "opentype.js";

/** A symbol's outline, ready to be placed: SVG path data for size 1000 at the origin. */
export type Glyph = {
  /** The step to the next symbol, in thousandths of the font size. */
  readonly advance: number;
  readonly path: string;
};

type Family = { readonly name: string; readonly folder: string; readonly weight: number };

/** The fonts that come with the program, in the order in which they are tried. */
const FAMILIES: readonly Family[] = [
  { name: "inter", folder: "@fontsource/inter", weight: 600 },
  { name: "kosugi", folder: "@fontsource/kosugi", weight: 400 },
  { name: "noto-emoji", folder: "@fontsource/noto-emoji", weight: 600 },
];

/** Size at which outlines are stored. */
export const OUTLINE_SIZE = 1000;

type Subset = {
  readonly file: string;
  readonly ranges: readonly (readonly [number, number])[];
};

let subsets: readonly Subset[] | undefined;
const fonts = new Map<string, opentype.Font>();
const glyphs = new Map<string, Glyph>();

/** The outline of one symbol (a grapheme), from the fonts of the installed packages. A labelled box where none has it. */
export function glyphOf(symbol: string): Glyph {
  const known = glyphs.get(symbol) ?? findGlyph(symbol);
  glyphs.set(symbol, known);
  return known;
}

/** For a composed symbol (an emoji with skin tone, a family): the first part that a font has. */
function findGlyph(symbol: string): Glyph {
  const codePoints = [...symbol].map((part) => part.codePointAt(0) ?? 0);
  for (const codePoint of codePoints) {
    const found = outlineOf(codePoint);
    if (found !== undefined) return found;
  }
  return labelledBox(codePoints[0] ?? 0);
}

function outlineOf(codePoint: number): Glyph | undefined {
  subsets ??= FAMILIES.flatMap(listSubsets);
  for (const { file, ranges } of subsets) {
    if (!ranges.some(([from, to]) => codePoint >= from && codePoint <= to)) continue;
    const font = fontOf(file);
    const glyph = font.charToGlyph(String.fromCodePoint(codePoint));
    if (glyph.index === 0) continue;
    const path = glyph.getPath(0, 0, OUTLINE_SIZE).toPathData(1);
    const advance = ((glyph.advanceWidth ?? font.unitsPerEm) / font.unitsPerEm) * OUTLINE_SIZE;
    return { advance, path };
  }
  return undefined;
}

/** A font file is read when the first symbol of its range is needed. */
function fontOf(file: string): opentype.Font {
  const open = fonts.get(file) ?? opentype.parse(new Uint8Array(readFileSync(file)).buffer);
  fonts.set(file, open);
  return open;
}

function listSubsets(family: Family): Subset[] {
  const { resolve } = createRequire(import.meta.url);
  const folder = dirname(resolve(`${family.folder}/package.json`));
  const ranges: Record<string, string> = JSON.parse(
    readFileSync(join(folder, "unicode.json"), "utf8"),
  );
  return Object.entries(ranges).map(([name, list]) => {
    const part = name.replace(/[[\]]/g, "");
    const file = `${family.name}-${part}-${family.weight}-normal.woff`;
    return { file: join(folder, "files", file), ranges: parseRanges(list) };
  });
}

/** Reads a list as CSS writes it: `U+20,U+100-1ff`. */
function parseRanges(list: string): (readonly [number, number])[] {
  return list.split(",").map((range) => {
    const [from = "0", to = from] = range.trim().replace(/^U\+/i, "").split("-");
    return [Number.parseInt(from, 16), Number.parseInt(to, 16)] as const;
  });
}

/** A box that holds the symbol's number in hexadecimal. It is visible, and shows which symbol is missing. */
function labelledBox(codePoint: number): Glyph {
  const digits = codePoint.toString(16).toUpperCase().padStart(4, "0");
  const perRow = digits.length > 4 ? 3 : 2;
  const frame = "M60 0L60 -760L860 -760L860 0Z M100 -40L820 -40L820 -720L100 -720Z";
  const parts = [frame];
  const size = perRow === 3 ? 0.34 : 0.4;
  [...digits].forEach((digit, index) => {
    const outline = outlineOf(digit.charCodeAt(0));
    if (outline === undefined) return;
    const x = 460 + ((index % perRow) - perRow / 2 + 0.5) * 620 * size;
    const y = index < perRow ? -430 : -90;
    parts.push(movePath(outline.path, size, x - (outline.advance * size) / 2, y));
  });
  return { advance: 920, path: parts.join(" ") };
}

/** Scales and moves absolute path data (only M, L, Q, C and Z occur in outlines). */
export function movePath(path: string, scale: number, x: number, y: number): string {
  let isX = false;
  return path.replace(/[MLQCZ]|-?\d+(?:\.\d+)?/g, (token) => {
    if (/[MLQCZ]/.test(token)) {
      isX = true;
      return token;
    }
    const moved = Number(token) * scale + (isX ? x : y);
    isX = !isX;
    return ` ${Math.round(moved * 10) / 10}`;
  });
}
