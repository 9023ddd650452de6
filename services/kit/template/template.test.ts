import { describe, expect, test } from "vitest";
import { fill, partsOf } from "./template.ts";

const values = {
  prompt: "a $& fox",
  seconds: 5,
  audio: false,
  references: ["one", "two"],
  lyrics: undefined,
  photo: "data:image/png;base64,iVBO",
  musicMode: "instrumental",
};

describe("a filled template", () => {
  test.each([
    ["a whole placeholder keeps its type", "${seconds}", 5],
    ["false and 0 are values", ["${audio}", 0], [false, 0]],
    ["as text where it says so", "${seconds:string}", "5"],
    ["text around it", "${seconds}s", "5s"],
    ["several in one text", "${prompt}/${seconds}", "a $& fox/5"],
    ["a plain dollar", "$$5 for ${seconds}", "$5 for 5"],
    ["a plain dollar before a brace", "$${seconds}", "${seconds}"],
    ["an absent value is empty within a text", "x${lyrics}y", "xy"],
    ["a list", { urls: "${references}" }, { urls: ["one", "two"] }],
    ["an element of a list", ["${references[1]}", "${references[2]}"], ["two"]],
    ["an absent value leaves its key out", { a: "${lyrics}", b: 1 }, { b: 1 }],
    ["null and what is no text stays", { a: null, b: true, c: 1.5 }, { a: null, b: true, c: 1.5 }],
    ["a map", { $map: "${musicMode}", instrumental: true, lyrics: false }, true],
    ["a map by a number", { n: { $map: "${seconds}", 5: 81, 10: 161 } }, { n: 81 }],
    ["a map's null leaves it out", { n: { $map: "${seconds}", 5: null } }, {}],
    ["a map without the value leaves it out", { n: { $map: "${seconds}", 6: 1 } }, {}],
    ["a map's value is a template", { $map: "${seconds}", 5: "${prompt}" }, "a $& fox"],
    ["a map's every other value", { n: { $map: "${seconds}", 6: 1, "*": "x" } }, { n: "x" }],
    ["nothing of an absent value, also with *", { n: { $map: "${lyrics}", "*": 1 } }, {}],
    [
      "an object for each reference, within a list",
      ["a", { $each: "${references}", url: "${item}", n: 1 }],
      ["a", { url: "one", n: 1 }, { url: "two", n: 1 }],
    ],
    [
      "a list of them as a value",
      { all: { $each: "${references}", at: ["${item}"] } },
      { all: [{ at: ["one"] }, { at: ["two"] }] },
    ],
    [
      "one object of one reference",
      { a: { $each: "${references[1]}", u: "${item}" } },
      { a: { u: "two" } },
    ],
    [
      "nothing of a reference that is not there",
      { a: { $each: "${references[2]}", u: "${item}" } },
      {},
    ],
    ["the bytes of a data URI", "${photo:base64}", "iVBO"],
    ["its media type", "${photo:mimeType}", "image/png"],
    ["no bytes of another text", { a: "${prompt:base64}" }, {}],
    ["an unknown name is absent", { a: "${constructor}" }, {}],
  ])("%s", (_, template, filled) => {
    expect(fill(template, values)).toEqual(filled);
  });

  test("wholly absent", () => {
    expect(fill("${lyrics}", values)).toBeUndefined();
  });
});

describe("the parts of a template", () => {
  test("every placeholder and map, with its place", () => {
    const template = { a: ["${prompt}", { $map: "${seconds}", 5: "${size}s" }] };
    expect(partsOf(template)).toMatchObject([
      { kind: "placeholder", path: ["a", 0], placeholder: { name: "prompt" } },
      { kind: "map", path: ["a", 1], of: { name: "seconds" }, keys: ["5"] },
      { kind: "placeholder", path: ["a", 1, "5"], placeholder: { name: "size" } },
    ]);
  });

  test.each([["$x"], ["${}"], ["${a b}"], ["${references[x]}"], ["${a"], ["${a:number}"]])(
    "%s is a fault",
    (text) => expect(partsOf({ a: text })).toMatchObject([{ kind: "fault", path: ["a"] }]),
  );

  test("a reference within $each is placed once, by $each", () => {
    expect(
      partsOf({ a: { $each: "${references}", url: "${item}", b: "${prompt}" } }),
    ).toMatchObject([
      { kind: "placeholder", path: ["a", "$each"], placeholder: { name: "references" } },
      { kind: "placeholder", path: ["a", "b"], placeholder: { name: "prompt" } },
    ]);
  });

  test.each([
    [{ a: "${item}" }, ["a"]],
    [{ a: { $each: "${prompt}" } }, ["a", "$each"]],
    [{ a: { $each: "${references:string}" } }, ["a", "$each"]],
    [{ a: { $each: 5 } }, ["a", "$each"]],
  ])("%j has a fault", (template, path) => {
    expect(partsOf(template)).toMatchObject([{ kind: "fault", path }]);
  });

  test.each([["${a}s"], [5], ["x"]])("a map of %s is a fault", ($map) =>
    expect(partsOf({ $map, 5: 1 })).toMatchObject([{ kind: "fault", path: ["$map"] }]),
  );
});
