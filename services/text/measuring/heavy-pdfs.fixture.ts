import { objectStream, packed, pdfOf, type SampleObject } from "./samples.fixture.ts";

/**
 * Files that are small, and name something large again and again: a reader that goes through it each time takes the square of the
 * file's size, or more.
 */
type Objects = Record<number, SampleObject | string>;

/** Values in what is named again and again. */
const long = 500_000;
const numbered = (from: number, count: number, value: (at: number) => SampleObject | string) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [from + at, value(at)])) as Objects;
const refs = (from: number, count: number) =>
  Array.from({ length: count }, (_, at) => `${from + at} 0 R`).join(" ");
/** Pages numbered from 100 on. */
const book = (pages: number, page: (at: number) => string, more: Objects) =>
  pdfOf({
    1: "<</Type/Catalog/Pages 2 0 R>>",
    2: `<</Type/Pages/Kids[${refs(100, pages)}]>>`,
    ...numbered(100, pages, (at) => `<</Type/Page${page(at)}>>`),
    ...more,
  });
const entries = (count: number) =>
  Array.from({ length: count }, (_, at) => `/N${at} null`).join("");
const tenLetters = packed("(0123456789) Tj");
const drawing = packed("/Fm Do");

/** A file, and what measuring it answers: its pages and the bytes of their text, or no bound of these; or a refusal. */
type HeavyPdf = [
  name: string,
  bytes: () => Buffer,
  answer: "uncountable" | { pages: number; textBytes: number | undefined },
];

export const heavyPdfs: HeavyPdf[] = [
  [
    "content in one list that all pages share",
    () =>
      book(1_000, () => "/Contents 5 0 R", {
        5: `[${"6 0 R ".repeat(long)}]`,
        6: tenLetters,
      }),
    { pages: 1_000, textBytes: 1_000 * long * 10 },
  ],
  [
    "annotations in one list that all pages share",
    () =>
      book(1_000, () => "/Annots 5 0 R", {
        5: `[${"<<>>".repeat(long)}<</AP<</N 6 0 R>>>>]`,
        6: tenLetters,
      }),
    { pages: 1_000, textBytes: 1_000 * 10 },
  ],
  [
    "tables of a stream of objects that has many versions",
    () => {
      const count = 200_000;
      const parts = `/Type/XRef/W[1 1 1]/Index[${"5 1 ".repeat(count)}]`;
      const whole = book(1, () => "", {
        6: packed(Buffer.alloc(3 * count, Buffer.of(2, 3, 0)), parts),
      });
      const { value, stream = Buffer.alloc(0) } = objectStream({ 5: "7" });
      const head = Buffer.from(`3 0 obj ${value}stream\n`);
      const version = Buffer.concat([head, stream, Buffer.from("\nendstream ")]);
      return Buffer.concat([whole, ...Array<Buffer>(8_000).fill(version)]);
    },
    "uncountable",
  ],
  [
    "an object of many versions, to which many refer",
    () => {
      const whole = book(1, () => "/Contents 5 0 R", { 5: `[${"6 0 R ".repeat(long)}]` });
      return Buffer.concat([whole, ...Array<Buffer>(100_000).fill(Buffer.from("6 0 obj 7 "))]);
    },
    "uncountable",
  ],
  [
    "annotations whose appearances are one large dictionary",
    () =>
      book(1, () => "/Annots 5 0 R", {
        5: `[${"<</AP 6 0 R>>".repeat(20_000)}]`,
        6: `<<${entries(50_000)}>>`,
      }),
    { pages: 1, textBytes: 0 },
  ],
  [
    "a large annotation that many lists have",
    () =>
      book(1, () => "/Annots 5 0 R", {
        5: `[${"6 0 R ".repeat(100_000)}]`,
        6: `<<${entries(100_000)}>>`,
      }),
    { pages: 1, textBytes: 0 },
  ],
  [
    "appearances that are ten times as many with each level",
    () =>
      book(
        1,
        () => "/Annots[<</AP 10 0 R>>]",
        numbered(10, 14, (at) => `<<${`/A ${11 + at} 0 R`.repeat(10)}>>`),
      ),
    { pages: 1, textBytes: 0 },
  ],
  [
    "names of drawings that all resources share",
    () =>
      book(1_000, (at) => `/Contents ${2_000 + at} 0 R/Resources<</XObject 5 0 R>>`, {
        5: `<<${Array.from({ length: 100_000 }, (_, at) => `/N${at} 6 0 R`).join("")}>>`,
        6: tenLetters,
        ...numbered(2_000, 1_000, () => drawing),
      }),
    { pages: 1_000, textBytes: 10_000 },
  ],
  [
    "a large picture that has many names",
    () =>
      book(1, () => "/Contents 7 0 R/Resources<</XObject 5 0 R>>", {
        5: `<<${Array.from({ length: 100_000 }, (_, at) => `/N${at} 6 0 R`).join("")}>>`,
        6: { value: `<</Subtype/Image${entries(100_000)}>>`, stream: Buffer.from("x") },
        7: drawing,
      }),
    { pages: 1, textBytes: 0 },
  ],
  [
    "names of glyphs that many fonts share",
    () =>
      book(1, () => "", {
        5: `[${"/a ".repeat(long)}]`,
        ...numbered(2_000, 50_000, () => "<</Differences 5 0 R>>"),
      }),
    { pages: 1, textBytes: 0 },
  ],
  [
    "filters that many streams share",
    () =>
      book(1_000, (at) => `/Annots[<</AP ${2_000 + at} 0 R>>]`, {
        5: `[${"null ".repeat(long)}]`,
        ...numbered(2_000, 1_000, () => ({ value: "<</Filter 5 0 R>>", stream: Buffer.from("x") })),
      }),
    "uncountable",
  ],
  [
    "parameters of filters that many streams share",
    () =>
      book(1_000, (at) => `/Contents ${2_000 + at} 0 R`, {
        5: `[${"null ".repeat(long)}]`,
        ...numbered(2_000, 1_000, () => packed("", "/DecodeParms 5 0 R")),
      }),
    "uncountable",
  ],
  [
    "large parameters of filters",
    () =>
      book(1_000, (at) => `/Contents ${2_000 + at} 0 R`, {
        5: `<<${"/Predictor 1".repeat(long)}>>`,
        ...numbered(2_000, 1_000, () => packed("", "/DecodeParms 5 0 R")),
      }),
    "uncountable",
  ],
  [
    "roots of page trees that share their pages",
    () =>
      book(900, () => "", {
        4: `[${refs(100, 900)}]`,
        ...numbered(2_000, 100_000, () => "<</Type/Pages/Kids 4 0 R>>"),
      }),
    "uncountable",
  ],
  [
    "strings of digits that do not end, within one another",
    () => book(1, () => "/Contents 5 0 R", { 5: packed("< ".repeat(long)) }),
    { pages: 1, textBytes: expectedOfOpen(2 * long) },
  ],
  [
    "names of megabytes of escapes, in objects that begin at the same place",
    () => {
      const name = Buffer.from(`50 0 51 0 52 0 /${"#41".repeat(15_000_000)}`);
      return book(1, () => "", {
        5: packed(name, "/N 3/First 15"),
        6: packed(name, "/N 3/First 15"),
      });
    },
    "uncountable",
  ],
  [
    "streams that all unpack to more than is looked at",
    () => {
      const bomb = packed(Buffer.alloc(65 * 1024 * 1024));
      return book(
        200,
        (at) => `/Contents ${2_000 + at} 0 R`,
        numbered(2_000, 200, () => bomb),
      );
    },
    { pages: 200, textBytes: undefined },
  ],
  [
    "tables without a single whole row, of many megabytes",
    () => {
      const parms = "/DecodeParms<</Predictor 12/Columns 99999999>>";
      const table = packed(Buffer.alloc(20 * 1024 * 1024), `/W[1 1 1]${parms}`);
      return book(
        1,
        () => "",
        numbered(2_000, 500, () => table),
      );
    },
    "uncountable",
  ],
  [
    "a hundred thousand tables",
    () =>
      book(
        1,
        () => "",
        numbered(2_000, 100_000, () => packed("", "/W[1 1 1]")),
      ),
    "uncountable",
  ],
];

/** Codes of strings each of which goes on to the end: that of the nth "<" has half of the bytes that are left. */
function expectedOfOpen(bytes: number): number {
  let codes = 0;
  for (let at = 0; at < bytes; at += 2) codes += (bytes - at) / 2;
  return codes;
}
