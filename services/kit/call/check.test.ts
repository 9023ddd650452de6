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
  ["an unknown name", { a: "${promt}", b: "${prompt}" }, ["a"], /promt/],
  ["a value of another kind", { a: "${lyrics}", b: "${prompt}" }, ["a"], /lyrics/],
  [
    "a map without an offered value",
    { p: "${prompt}", s: { $map: "${seconds}", 5: 1 } },
    ["s"],
    /10/,
  ],
  ["a reference too many", { p: "${prompt}", r: "${references[2]}" }, ["r"], /reference 3/],
  ["an index of what is no list", { p: "${prompt[0]}" }, ["p"], /no list/],
  ["a value that must be placed", { s: "${seconds}" }, [], /prompt/],
  ["a broken placeholder", { p: "${prompt}", q: "$" }, ["q"], /\$/],
])("%s is found", (_, template, path, message) => {
  expect(templateFaults(template, offer)).toEqual([
    { path, message: expect.stringMatching(message) },
  ]);
});
