import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { catalogJsonSchema, keysIn, valuesOf, wordsOf } from "./key-schema.ts";
import { keyWords } from "./key-words.ts";

const root = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");
const schema = catalogJsonSchema();
const keys = keysIn(schema);
const examples = [
  "deploy/catalog.yaml",
  ...readdirSync(join(root, "deploy/catalogs"))
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => `deploy/catalogs/${name}`),
];

describe("the meanings of keys", () => {
  test("every key of a catalog file has one", () => {
    expect(keys.filter(({ path }) => wordsOf(path) === undefined)).toEqual([]);
  });

  test("each is that of a key", () => {
    const places = keys.map(({ path }) => `.${path.join(".")}`);
    const stray = Object.keys(keyWords).filter(
      (entry) => !places.some((place) => place.endsWith(`.${entry}`)),
    );
    expect(stray).toEqual([]);
  });

  test("one that is below another key goes before one of its own", () => {
    expect(wordsOf(["models", "call", "t2v", "refused"])).toBe(keyWords.refused);
    expect(wordsOf(["upstreams", "jobs", "answers", "refused"])).toBe(keyWords["answers.refused"]);
  });
});

describe("the schema for editors", () => {
  const isValid = new Ajv2020({ strict: false }).compile(schema);

  test("deploy/catalog.schema.json is the schema of this version", () => {
    // `npm run catalog-schema` writes the file.
    expect(JSON.parse(read("deploy/catalog.schema.json"))).toEqual(schema);
  });

  test.each(examples)("%s names it, and is valid by it", (file) => {
    const text = read(file);
    const path = file.includes("catalogs/") ? "../catalog.schema.json" : "catalog.schema.json";
    expect(text.split("\n", 1)).toEqual([`# yaml-language-server: $schema=${path}`]);
    isValid(parse(text));
    expect(isValid.errors ?? []).toEqual([]);
  });

  test.each([
    ["an unknown key", { apiKeys: "X" }],
    ["a wrong type", { timeoutMs: "long" }],
    ["a key of another protocol", { tokenDelayMs: 1 }],
    ["a value out of bounds", { maxConcurrent: 0 }],
  ])("%s is a fault", (_, more) => {
    const upstreams = { one: { protocol: "openai", baseUrl: "https://example.com/v1", ...more } };
    const model = { id: "a", kind: "music", upstream: "one", creditPrice: 1 };
    expect(isValid({ upstreams, models: [model] })).toBe(false);
  });
});

test.each([
  ["maxConcurrent", "a whole number from 1 to 100000"],
  ["inlineImages", "true | false"],
  ["inputModalities", "a list of text | image | pdf | audio"],
  ["auth", "none | a group of keys"],
  ["upstreams", "a group of keys"],
])("the values of %s are %s", (name, values) => {
  const key = keys.find(({ path }) => path.at(-1) === name);
  expect(key && valuesOf(key.schema)).toBe(values);
});
