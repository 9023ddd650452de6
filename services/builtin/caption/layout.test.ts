import { describe, expect, test } from "vitest";
import { glyphOf } from "./fonts.ts";
import { breakLines, splitSymbols } from "./layout.ts";

function widthOf(line: string, fontSize: number): number {
  const advances = splitSymbols(line).map((symbol) => glyphOf(symbol).advance);
  return (advances.reduce((sum, advance) => sum + advance, 0) * fontSize) / 1000;
}

describe("breakLines", () => {
  test("breaks at spaces and keeps every word", () => {
    const text = "a quiet harbour in the first light of the morning";
    const { lines, cut } = breakLines(text, { width: 220, fontSize: 20, lineCount: 9 });
    expect(cut).toBe(false);
    expect(lines.length).toBeGreaterThan(1);
    expect(lines.join(" ")).toBe(text);
    for (const line of lines) expect(widthOf(line, 20)).toBeLessThanOrEqual(220);
  });

  test("breaks a word that is too long, and scripts without spaces, anywhere", () => {
    for (const text of ["x".repeat(120), "静かな港の朝の光".repeat(6)]) {
      const { lines } = breakLines(text, { width: 200, fontSize: 20, lineCount: 99 });
      expect(lines.join("")).toBe(text);
      for (const line of lines) expect(widthOf(line, 20)).toBeLessThanOrEqual(200);
    }
  });

  test("keeps the space between a word and a symbol of an unspaced script", () => {
    const { lines } = breakLines("sea 海 sky", { width: 900, fontSize: 20, lineCount: 2 });
    expect(lines).toEqual(["sea 海 sky"]);
  });

  test("ends with an ellipsis where the room is too small", () => {
    const room = { width: 240, fontSize: 20, lineCount: 2 };
    const { lines, cut } = breakLines("many words, ".repeat(3000), room);
    expect(cut).toBe(true);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toMatch(/[a-z]…$/);
    expect(widthOf(lines[1] ?? "", 20)).toBeLessThanOrEqual(240);
  });

  test("drops what cannot be drawn and shows flags as letters", () => {
    const room = { width: 900, fontSize: 20, lineCount: 2 };
    const { lines } = breakLines("a\u0000\n\tb\u200b \ud800 🇩🇪", room);
    expect(lines).toEqual(["a b \ufffd DE"]);
  });

  test("empty text has no lines", () => {
    const room = { width: 100, fontSize: 20, lineCount: 2 };
    expect(breakLines(" \n ", room)).toEqual({ lines: [], cut: false });
  });
});

describe("glyphs", () => {
  test.each(["A", "ß", "Ж", "Ω", "ế", "海", "の", "🌊", "…"])(
    "%s has its own outline",
    (symbol) => {
      expect(glyphOf(symbol).path.length).toBeGreaterThan(20);
      expect(glyphOf(symbol).path).not.toContain("M60 0L60 -760");
    },
  );

  test("composed emoji show their first part", () => {
    expect(glyphOf("👍🏽")).toEqual(glyphOf("👍"));
  });

  test.each(["안", "ع", "𓀀"])("%s, which no font has, is a box with its number", (symbol) => {
    const { path, advance } = glyphOf(symbol);
    expect(path).toContain("M60 0L60 -760");
    expect(path.length).toBeGreaterThan(300);
    expect(advance).toBeGreaterThan(500);
  });

  test("two missing symbols look different", () => {
    expect(glyphOf("안").path).not.toBe(glyphOf("녕").path);
  });
});
