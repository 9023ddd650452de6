import { describe, expect, test } from "vitest";
import { chanceOf, changeBytes } from "../../../test/support/chance.ts";
import { promptly } from "../../../test/support/promptly.ts";
import { maxPdfPages } from "../limits.ts";
import { measurePdf } from "./pdf.ts";
import {
  objectStream,
  packed,
  pagesOf,
  pdfOf,
  type SampleObject,
  samplePdf,
} from "./samples.fixture.ts";

const measure = (bytes: Buffer) => measurePdf(bytes, maxPdfPages);
const pages = (bytes: Buffer) => {
  const measured = measure(bytes);
  return typeof measured === "string" ? measured : measured.pages;
};
const empty = "<</Type/Page/Parent 2 0 R>>";
const catalog = "<</Type/Catalog/Pages 2 0 R>>";
/** Pages numbered from 10 on. */
const leaves = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [10 + at, empty]));
const refs = (count: number) =>
  Array.from({ length: count }, (_, at) => `${10 + at} 0 R`).join(" ");
const tree = (kids: string, more: Record<number, SampleObject | string> = {}, count = 1) =>
  pdfOf({ 1: catalog, 2: `<</Type/Pages/Count ${count}/Kids[${kids}]>>`, ...more });

describe("pages are counted", () => {
  test("as they are", () => {
    expect(pages(samplePdf())).toBe(1);
    expect(pages(samplePdf(Array(57).fill("x")))).toBe(57);
  });
  test("in streams of objects", () => {
    const inside = objectStream({ 2: `<</Type/Pages/Count 3/Kids[${refs(3)}]>>`, ...leaves(3) });
    expect(pages(pdfOf({ 1: catalog, 4: inside }))).toBe(3);
  });
  test("beside a table that says where they are", () => {
    const inside = objectStream({ 2: `<</Type/Pages/Count 3/Kids[${refs(3)}]>>`, ...leaves(3) });
    const rows = [0, 1, 2, 3].map((index) => Buffer.from([2, 0, 4, index]));
    const table = packed(
      Buffer.concat(rows.map((row) => Buffer.concat([Buffer.of(0), row]))),
      "/Type/XRef/W[1 2 1]/Index[2 1 10 3]/DecodeParms<</Predictor 12/Columns 4>>",
    );
    expect(pages(pdfOf({ 1: catalog, 4: inside, 6: table }))).toBe(3);
  });
  test("in a tree of several levels, with spaces and comments", () => {
    const more = {
      20: "<< /Type /Pages % of many\n /Kids [ 10 0 R\n11 0 R ] >>",
      21: "<</Type/Pages/Kids 22 0 R>>",
      22: "[12 0 R 13 0 R 14 0 R]",
    };
    expect(pages(tree("20 0 R 21 0 R", { ...leaves(5), ...more }))).toBe(5);
  });
});

describe("a page count is not understated", () => {
  const lying: [name: string, bytes: () => Buffer, found: number][] = [
    ["by /Count", () => tree(refs(40), leaves(40), 1), 40],
    [
      "by a second /Kids",
      () => pdfOf({ 1: catalog, 2: `<</Type/Pages/Kids[]/Kids[${refs(9)}]>>`, ...leaves(9) }),
      9,
    ],
    [
      "by a name that is spelled with digits",
      () => pdfOf({ 1: catalog, 2: `<</Type/P#61ges/#4bids[${refs(9)}]>>`, ...leaves(9) }),
      9,
    ],
    ["by pages without their type", () => tree("10 0 R 11 0 R", { 10: "<<>>", 11: "<<>>" }), 2],
    ["by pages that are not there", () => tree(refs(7)), 7],
    ["by pages within the tree", () => tree("<</Type/Page>><</Type/Page>>"), 2],
    ["by a page that stands in it often", () => tree("10 0 R ".repeat(300), leaves(1)), 300],
    [
      "by nodes that stand in it often",
      () => tree("60 0 R 60 0 R 60 0 R", { 60: `<</Kids[${refs(30)}]>>`, ...leaves(30) }),
      90,
    ],
    [
      "by an earlier or a later version",
      () =>
        Buffer.concat([
          tree(refs(30), leaves(30)),
          Buffer.from(`2 0 obj <</Type/Pages/Kids[10 0 R]>> endobj`),
        ]),
      30,
    ],
    [
      "by a tree that only another catalog names",
      () =>
        tree("10 0 R", { ...leaves(30), 50: `<</Pages 51 0 R>>`, 51: `<</Kids[${refs(30)}]>>` }),
      30,
    ],
    [
      "by pages that only a reader sees that repairs the file",
      () => tree("10 0 R", leaves(30)),
      30,
    ],
    [
      "by objects in the data of a stream",
      () =>
        tree("10 0 R", {
          10: empty,
          5: {
            value: "<</Length 99>>",
            stream: Buffer.from(`7 0 obj <</Type/Pages/Kids[${refs(20)}]>> endobj`),
          },
        }),
      20,
    ],
    [
      "by a type that stands elsewhere",
      () => pdfOf({ 1: catalog, 2: `<</Type 6 0 R/Kids[${refs(4)}]>>`, 6: "/Pages", ...leaves(4) }),
      4,
    ],
  ];
  test.for(lying)("%s", ([, bytes, found]) => {
    expect(pages(bytes())).toBe(found);
  });

  const behind = (more: string) => Buffer.concat([tree("10 0 R", leaves(1)), Buffer.from(more)]);
  const hidden: [name: string, bytes: () => Buffer][] = [
    [
      "a number behind a comment",
      () =>
        Buffer.concat([
          tree("10 0 R", leaves(1)),
          Buffer.from(`2 0 %\nobj <</Type/Pages/Kids[${refs(30)}]>> endobj`),
        ]),
    ],
    [
      "a number and a value behind comments",
      () =>
        Buffer.concat([
          tree("10 0 R", leaves(1)),
          Buffer.from(`2 0 %\nobj %\n[${refs(30)}] endobj`),
        ]),
    ],
    [
      "objects in a stream with another filter",
      () =>
        tree("10 0 R", {
          10: empty,
          5: { value: "<</Type/ObjStm/N 1/First 4/Filter/LZWDecode>>", stream: Buffer.from("x") },
        }),
    ],
    [
      "objects in a stream that is cut",
      () => {
        const inside = objectStream(leaves(30));
        return tree("10 0 R", {
          10: empty,
          5: { ...inside, stream: inside.stream?.subarray(0, 20) ?? Buffer.alloc(0) },
        });
      },
    ],
    [
      "objects in a stream that unpacks to more than a thread may hold",
      () =>
        tree("10 0 R", {
          10: empty,
          5: packed(Buffer.alloc(80 * 1024 * 1024, 0x20), "/N 1/First 4"),
        }),
    ],
    [
      "a stream that counts its objects in another object",
      () => tree("10 0 R", { 10: empty, 5: packed("10 0 <<>>", "/N 6 0 R/First 5") }),
    ],
    ["a number with a point", () => behind(`2.0 0 obj <</Type/Pages/Kids[${refs(30)}]>> endobj`)],
    [
      "a table of another object's place",
      () => {
        const bytes = tree("10 0 R", { ...leaves(1), 60: `<</Kids[${refs(30)}]>>` });
        const entry = (at: number) => String(at).padStart(10, "0");
        const text = bytes.toString("latin1");
        const [own, other] = [entry(text.indexOf("10 0 obj")), entry(text.indexOf("60 0 obj"))];
        return Buffer.from(text.replace(own, other), "latin1");
      },
    ],
    [
      "a table that numbers the objects of a stream otherwise",
      () => {
        const inside = objectStream({ 60: `<</Kids[${refs(30)}]>>` });
        // An entry: in a stream of objects, the number of that stream, and the place in it.
        const table = packed(Buffer.from([2, 5, 0]), "/Type/XRef/W[1 1 1]/Index[10 1]");
        return tree("10 0 R", { 5: inside, 6: table });
      },
    ],
    [
      "such a table in differences",
      () => {
        const inside = objectStream({ 60: `<</Kids[${refs(30)}]>>` });
        const parms = "/DecodeParms<</Predictor 12/Columns 3>>";
        const rows = Buffer.from([2, 0, 0, 0, 2, 2, 5, 0]);
        const table = packed(rows, `/Type/XRef/W[1 1 1]/Index[9 2]${parms}`);
        return tree("10 0 R", { 5: inside, 6: table });
      },
    ],
    [
      "a table that cannot be read",
      () =>
        tree("10 0 R", { ...leaves(1), 6: { value: "<</W[1 2 1]>>", stream: Buffer.from("x") } }),
    ],
    ["a tree that holds itself", () => tree("2 0 R")],
    [
      "a tree without end",
      () =>
        tree(
          "100 0 R",
          Object.fromEntries(
            Array.from({ length: 500 }, (_, at) => [100 + at, `<</Kids[${101 + at} 0 R]>>`]),
          ),
        ),
    ],
    [
      "a dictionary that does not end",
      () => Buffer.concat([tree("10 0 R", leaves(1)), Buffer.from("9 0 obj <</Type/Pages/Kids[")]),
    ],
    [
      "an operator within a value",
      () => tree("10 0 R", { 10: empty, 11: "<</Type/Pages/Kids[1 0 R obj]>>" }),
    ],
    ["no page", () => pdfOf({ 1: "<</Type/Catalog>>" })],
    [
      "lists within lists",
      () => tree("10 0 R", { 10: empty, 11: `${"[".repeat(5_000)}${"]".repeat(5_000)}` }),
    ],
  ];
  test.for(hidden)("what cannot be counted is not taken: %s", ([, bytes]) => {
    expect(measure(bytes())).toBe("uncountable");
  });

  test("nor is a tree of a billion pages, which takes no time to find", () => {
    const levels = Object.fromEntries(
      Array.from({ length: 9 }, (_, at) => [
        100 + at,
        `<</Kids[${`${101 + at} 0 R `.repeat(10)}]>>`,
      ]),
    );
    expect(measure(tree("100 0 R", levels))).toBe("too-many-pages");
    expect(measure(tree(refs(1_001), leaves(1_001)))).toBe("too-many-pages");
    expect(pages(tree(refs(1_000), leaves(1_000)))).toBe(1_000);
  });
  test("nor a PDF with a password", () => {
    const objects = pagesOf(["x"]);
    expect(measure(pdfOf({ ...objects, 5: "<</Filter/Standard/V 1>>" }, "/Encrypt 5 0 R"))).toBe(
      "encrypted",
    );
    expect(measure(pdfOf(objects, "/#45ncrypt<</V 1>>"))).toBe("encrypted");
    expect(measure(pdfOf({ ...objects, 5: packed("x", "/Type/XRef/Encrypt 6 0 R") }))).toBe(
      "encrypted",
    );
  });
  test("nor what is no PDF", () => {
    for (const bytes of ["", "%PDF", "\n%PDF-1.7\n", "%PDF-x", "PK\x03\x04"]) {
      expect(measure(Buffer.from(bytes))).toBe("no-pdf");
    }
  });
  test("nor objects within each other, which would take the square of their size", async () => {
    const count = 200_000;
    const nested = Buffer.from(`${"1 0 obj (".repeat(count)}${")".repeat(count)}`);
    const said = await promptly(10_000, () => measure(Buffer.concat([samplePdf(), nested])));
    expect(said).toBe("uncountable");
  });
});

test("bytes that are changed at random make no more than an answer", () => {
  const whole = pdfOf({
    ...pagesOf(["one", "two", "three"]),
    40: objectStream({ 41: "<</Type/Page>>", 42: "[1 2 3]" }),
  });
  const chance = chanceOf(7);
  for (let round = 0; round < 2_000; round++) {
    const bytes = Buffer.from(whole);
    changeBytes(bytes, chance);
    measure(bytes.subarray(0, chance.int(5) === 0 ? chance.int(bytes.length) : bytes.length));
  }
});
