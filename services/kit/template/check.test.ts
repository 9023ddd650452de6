import { expect, test } from "vitest";
import { type Offer, templateFaults } from "./check.ts";

const offer: Offer = {
  values: new Map<string, readonly string[] | "any">([
    ["prompt", "any"],
    ["seconds", ["5", "10"]],
    ["seed", "any"],
  ]),
  maxReferences: 2,
  mustPlace: new Map([["prompt", "what callers ask for would be lost"]]),
};

/** All of the references, as a list. */
const placed = { all: "${references}" };

test("a template that fits has no faults", () => {
  const template = {
    prompt: "${prompt}",
    length: { $map: "${seconds}", 5: 81, 10: 161 },
    first: "${references[0]}",
    last: "${references[1]}",
  };
  expect(templateFaults(template, offer)).toEqual([]);
});

test.each([
  ["an unknown name", { a: "${promt}", b: "${prompt}", ...placed }, ["a"], /promt/],
  ["a value of another kind", { a: "${lyrics}", b: "${prompt}", ...placed }, ["a"], /lyrics/],
  [
    "a map without an offered value",
    { p: "${prompt}", s: { $map: "${seconds}", 5: 1 }, ...placed },
    ["s"],
    /10/,
  ],
  [
    "a reference too many",
    { p: "${prompt}", all: "${references}", r: "${references[2]}" },
    ["r"],
    /reference 3/,
  ],
  [
    "a reference that goes nowhere",
    { p: "${prompt}", r: "${references[0]}" },
    [],
    /no reference 2/,
  ],
  ["no reference at all", { p: "${prompt}" }, [], /no references/],
  ["an index of what is no list", { p: "${prompt[0]}", ...placed }, ["p"], /no list/],
  ["a value that must be placed", { s: "${seconds}", ...placed }, [], /prompt/],
  ["a broken placeholder", { p: "${prompt}", q: "$", ...placed }, ["q"], /\$/],
])("%s is found", (_, template, path, message) => {
  expect(templateFaults(template, offer)).toEqual([
    { path, message: expect.stringMatching(message) },
  ]);
});

test.each(["${references}", "${references[0]}", "${references:string}"])(
  "%s is a fault where generations have no references",
  (text) => {
    const found = templateFaults({ p: "${prompt}", r: text }, { ...offer, maxReferences: 0 });
    expect(found).toEqual([{ path: ["r"], message: "places reference 1 of at most 0" }]);
  },
);

test("an object for each reference is left out where generations have none", () => {
  const template = { p: "${prompt}", r: { $each: "${references[0]}", url: "${item}" } };
  expect(templateFaults(template, { ...offer, maxReferences: 0 })).toEqual([]);
});
