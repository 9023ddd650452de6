import { constants, deflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { maxPdfPages } from "../limits.ts";
import { type MeasuredPdf, measurePdf } from "./pdf.ts";
import { packed, pagesOf, pdfOf, type SampleObject, samplePdf } from "./samples.fixture.ts";

const measure = (bytes: Buffer) => measurePdf(bytes, maxPdfPages);
const text = (bytes: Buffer) => (measure(bytes) as MeasuredPdf).textBytes;
const catalog = "<</Type/Catalog/Pages 2 0 R>>";
const shared = () =>
  pdfOf({
    1: catalog,
    2: "<</Type/Pages/Kids[10 0 R 10 0 R]>>",
    10: "<</Type/Page/Parent 2 0 R>>",
  });

describe("the text of pages", () => {
  const page = (content: SampleObject, more: Record<number, SampleObject | string> = {}) =>
    pdfOf({
      1: catalog,
      2: "<</Type/Pages/Count 1/Kids[10 0 R]>>",
      10: "<</Type/Page/Contents 11 0 R/Resources 12 0 R>>",
      11: content,
      12: "<</XObject<</Fm 13 0 R/Im 14 0 R>>>>",
      14: { value: "<</Subtype/Image/Filter/DCTDecode>>", stream: Buffer.from("\xff\xd8") },
      ...more,
    });
  const form = (content: string, more = "") => packed(content, `/Subtype/Form${more}`);

  test("is what they show, and little more", () => {
    const measured =
      text(samplePdf(Array(10).fill("A page of forty letters, or a few more."))) ?? 0;
    expect(measured).toBeGreaterThanOrEqual(390);
    expect(measured).toBeLessThan(410);
    expect(text(page(packed("/Im Do q 1 0 0 1 0 0 cm Q")))).toBe(0);
  });

  const shown: [name: string, bytes: () => Buffer, least: number][] = [
    ["strings of digits", () => page(packed("<48656c6c6f> Tj")), 5],
    ["strings in lists", () => page(packed("[(Hel) -20 (lo) <4142>] TJ")), 7],
    ["parentheses within strings", () => page(packed("(a(b)c\\)d) Tj (efg) Tj")), 9],
    ["a string without end", () => page(packed("(abc")), 3],
    [
      "strings behind a picture's data that looks like a string",
      () => page(packed("BI ID (%< EI\n(abcdef) Tj")),
      6,
    ],
    ["strings behind a comment", () => page(packed("% ( < \n(abcdef) Tj")), 6],
    [
      "a form, as often as it is drawn",
      () => page(packed("/Fm Do ".repeat(50)), { 13: form("(0123456789) Tj") }),
      500,
    ],
    [
      "forms within forms",
      () =>
        page(packed("/Fm Do ".repeat(10)), {
          13: form("/A Do ".repeat(10), "/Resources<</XObject<</A 15 0 R>>>>"),
          15: form("/A Do ".repeat(10), "/Resources<</XObject<</A 16 0 R>>>>"),
          16: form("(0123456789) Tj"),
        }),
      10_000,
    ],
    [
      "a form under another name in a comment",
      () => page(packed("/Fm %/Im\nDo"), { 13: form("(0123456789) Tj") }),
      10,
    ],
    [
      "a page that inherits its resources",
      () =>
        pdfOf({
          1: catalog,
          2: "<</Type/Pages/Kids[10 0 R]/Resources<</XObject<</Fm 13 0 R>>>>>>",
          10: "<</Type/Page/Contents 11 0 R>>",
          11: packed("/Fm Do"),
          13: form("(0123456789) Tj"),
        }),
      10,
    ],
    [
      "content that several pages share",
      () =>
        pdfOf({
          ...pagesOf(["x", "x"]),
          10: "<</Type/Page/Contents 11 0 R>>",
          12: "<</Type/Page/Contents[11 0 R 11 0 R]>>",
          11: packed("(0123456789) Tj"),
        }),
      30,
    ],
    [
      "content that pages share which draw another form by the same name",
      () =>
        pdfOf({
          ...pagesOf(["x", "x"]),
          10: "<</Type/Page/Contents 11 0 R/Resources<</XObject<</Fm 14 0 R>>>>>>",
          12: "<</Type/Page/Contents 11 0 R/Resources<</XObject<</Fm 15 0 R>>>>>>",
          11: packed("/Fm Do"),
          14: form("(x) Tj"),
          15: form("(0123456789) Tj"),
        }),
      11,
    ],
    ["content that calls itself a picture", () => page(packed("(abc) Tj", "/Subtype/Image")), 3],
    [
      "content that is not packed",
      () => page({ value: "<</Length 3>>", stream: Buffer.from("(0123456789) Tj") }),
      10,
    ],
    [
      "content behind a keyword that it holds itself",
      () =>
        page({
          value: "<</Length 40>>",
          stream: Buffer.from("(endstream) Tj (0123456789) Tj              "),
        }),
      19,
    ],
    [
      "annotations",
      () =>
        page(packed(""), {
          10: `<</Type/Page/Annots[${"20 0 R ".repeat(30)}]>>`,
          20: "<</AP<</N 13 0 R>>>>",
          13: form("(0123456789) Tj"),
        }),
      300,
    ],
    [
      "what stands in the file besides",
      () => pdfOf({ ...pagesOf(["x"]), 30: "<</Title(0123456789)/ActualText<4142434445>>>" }),
      15,
    ],
    [
      "codes that a font makes long",
      () =>
        page(packed("(0123456789) Tj"), {
          20: "<</Type/Font/ToUnicode 21 0 R>>",
          21: packed("1 beginbfchar <30> <4F60597D4F60597D> endbfchar"),
        }),
      120,
    ],
    ...[
      ["a list of its own", "21 0 R", 40],
      ["a list that has a name", "/90ms-RKSJ-H", 30],
      ["no list", "/Identity-H", 20],
    ].map(([what, encoding, least]): [string, () => Buffer, number] => [
      `codes that ${what} makes characters of a collection`,
      () =>
        page(packed("(0123456789) Tj"), {
          20: `<</Subtype/Type0/DescendantFonts[22 0 R]/Encoding ${encoding}>>`,
          21: packed("1 begincidrange <00> <FF> 1200 endcidrange"),
        }),
      Number(least),
    ]),
    [
      "codes of a range that runs into longer characters",
      () =>
        page(packed("(0123456789) Tj"), {
          20: "<</ToUnicode 21 0 R>>",
          21: packed("1 beginbfrange <00> <FF> <07F0> endbfrange"),
        }),
      30,
    ],
    [
      "glyphs whose names are long",
      () => page(packed("(0123456789) Tj"), { 20: "<</Differences[48/a_b_c_d_e]>>" }),
      50,
    ],
    [
      "glyphs whose names are numbers",
      () => page(packed("(0123456789) Tj"), { 20: "<</Differences[48/uni4F60597D4F60]>>" }),
      90,
    ],
  ];
  test.for(shown)("is not understated: %s", ([, bytes, least]) => {
    expect(text(bytes())).toBeGreaterThanOrEqual(least);
  });

  const cut = deflateSync("(0123456789) Tj", { finishFlush: constants.Z_SYNC_FLUSH });
  const unknown: [name: string, bytes: () => Buffer][] = [
    [
      "content with another filter",
      () => page({ value: "<</Filter/LZWDecode>>", stream: Buffer.from("x") }),
    ],
    [
      "content that is cut",
      () => page({ value: "<</Filter/FlateDecode>>", stream: cut.subarray(0, 12) }),
    ],
    [
      "content of which some bytes are predicted",
      () => page(packed("(abc) Tj", "/DecodeParms<</Predictor 12>>")),
    ],
    ["content that unpacks to gigabytes", () => page(packed(Buffer.alloc(80 * 1024 * 1024)))],
    [
      "a form that draws itself",
      () =>
        page(packed("/Fm Do"), {
          13: form("(x) Tj /Fm Do", "/Resources<</XObject<</Fm 13 0 R>>>>"),
        }),
    ],
    ["a page that stands in the tree twice", shared],
    [
      "a font's table that cannot be had",
      () =>
        page(packed("(abc) Tj"), {
          20: "<</ToUnicode 21 0 R>>",
          21: { value: "<</Filter/LZWDecode>>", stream: Buffer.from("x") },
        }),
    ],
  ];
  test.for(unknown)("has no bound: %s", ([, bytes]) => {
    expect(measure(bytes())).toEqual({ pages: expect.any(Number), textBytes: undefined });
  });
});
