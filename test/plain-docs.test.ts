import { readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { describe, expect, test } from "vitest";
import { thisCheckout } from "./support/checkout.ts";
import { ownFiles } from "./support/own-files.ts";
import { mostWords, sentencesOf, unwanted, unwantedIn, wordsOf } from "./support/plain-words.ts";

const read = (file: string) => readFileSync(join(thisCheckout, file), "utf8");
const pages = ownFiles().filter((file) => /^(docs\/)?[\w-]+\.md$/.test(file));
/** Their tables are made from texts in the code. */
const generated = ["docs/errors.md", "docs/metrics.md"];

/**
 * Paragraphs, items of lists, headings and rows of tables. `code` becomes the one word CODE, a link its text. Parts that are made from code
 * are left out.
 */
function blocksOf(page: string): string[] {
  return read(page)
    .replaceAll(/^ *```.*?^ *```$/gms, "")
    .replaceAll(/^<!-- .*?^<!-- end of .*?$/gms, "")
    .replaceAll(/`[^`]+`/g, "CODE")
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/<https?:[^>]*>/g, "CODE")
    .split(/\n(?=\s*\n|\s*(?:[*-]|\d+\.) |#|\|)/)
    .map((block) => block.replaceAll(/\s+/g, " ").trim());
}

const isRow = (block: string) => block.startsWith("|");

describe("the pages are plain", () => {
  test.each(pages)("sentences of %s have at most 30 words", (page) => {
    const prose = blocksOf(page).filter((block) => !isRow(block));
    const sentences = prose.flatMap(sentencesOf);
    expect(sentences.filter((sentence) => wordsOf(sentence).length > mostWords)).toEqual([]);
  });

  test.each(pages)("%s uses the glossary's words", (page) => {
    const blocks = blocksOf(page).filter((block) => !(isRow(block) && generated.includes(page)));
    expect(blocks.filter((block) => unwantedIn(block).length > 0)).toEqual([]);
  });

  test("the start page leads to every page", () => {
    const start = read("docs/README.md");
    const named = (page: string) => start.includes(`](${posix.relative("docs", page)}`);
    const others = pages.filter((page) => page !== "docs/README.md");
    expect(others.filter((page) => !named(page))).toEqual([]);
  });

  test("the glossary is short, and names words that are not to be used", () => {
    const terms = blocksOf("docs/glossary.md").filter((block) => /^\| [a-zU]/.test(block));
    expect(terms.filter((term) => !term.startsWith("| word")).length).toBeLessThanOrEqual(40);
    expect(unwanted.length).toBeGreaterThan(10);
  });
});

const screens = ownFiles().filter((file) => /^gateway\/console\/app\/.*\.tsx?$/.test(file));

/** Texts of a file that readers see: of elements, and strings of several words. Values in them become the word VALUE. */
function textsOf(screen: string): string[] {
  const code = read(screen)
    .replaceAll(/\/\*.*?\*\//gs, "")
    .replaceAll(/^\s*\/\/.*$/gm, "")
    .replaceAll(/^import .*?;$/gms, "")
    .replaceAll(/\$\{[^{}]*\}/g, "VALUE");
  const found = [
    ...code.matchAll(/[>}]([\w\s,.:;'’“”()?!%…-]+)[<{]|(["`])([^"`\n{}<>=]* [^"`\n{}<>=]*)\2/g),
  ];
  return found
    .map(([, text = "", , string = ""]) => (text || string).replaceAll(/\s+/g, " ").trim())
    .filter((text) => text.includes(" ") || /^[A-Z][a-z]/.test(text));
}

describe("the console's texts are plain", () => {
  test("they are found", () => {
    const texts = screens.flatMap(textsOf);
    expect(texts).toContain("Charged this month");
    expect(texts).toContain("Its files and its prompt are erased. Its charge stays in the ledger.");
  });

  test.each(screens)("%s uses the glossary's words, in short sentences", (screen) => {
    const texts = textsOf(screen);
    expect(texts.filter((text) => unwantedIn(text).length > 0)).toEqual([]);
    const long = texts.flatMap(sentencesOf).filter((one) => wordsOf(one).length > mostWords);
    expect(long).toEqual([]);
  });
});
