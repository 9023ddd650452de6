import { expect, test } from "vitest";
import type { JsonObject, JsonValue } from "#kit/base/json.ts";
import { parseOutputPath } from "#kit/template/output-path.ts";
import { hasText, schemaFaults } from "./schema.ts";

const document: JsonObject = {
  components: {
    schemas: {
      Ratio: { type: "string", enum: ["16:9", "9:16"] },
      Size: {
        type: "object",
        properties: { width: { type: "integer", minimum: 64, maximum: 2048 } },
        required: ["width"],
      },
      Loop: { $ref: "#/components/schemas/Loop" },
      Twice: {
        anyOf: [{ $ref: "#/components/schemas/Twice" }, { $ref: "#/components/schemas/Twice" }],
      },
      Video: { type: "object", properties: { url: { type: "string" }, size: { type: "integer" } } },
    },
  },
};
const to = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const faultsOf = (value: JsonValue, schema: JsonValue) =>
  schemaFaults(value, schema, document).map(({ path, message }) => `${path.join(".")}: ${message}`);

test.each<[JsonValue, JsonValue, string[]]>([
  ["16:9", to("Ratio"), []],
  ["4:3", to("Ratio"), [': must be "16:9", "9:16"; it would be "4:3"']],
  ["4:3", { allOf: [to("Ratio")] }, [': must be "16:9", "9:16"; it would be "4:3"']],
  ["square", { anyOf: [to("Size"), { const: "square" }] }, []],
  [{ width: 64 }, { anyOf: [to("Size"), { const: "square" }] }, []],
  [
    { width: 1 },
    { anyOf: [to("Size"), { const: "square" }] },
    ["width: must be at least 64; it would be 1"],
  ],
  [7, { oneOf: [{ type: "string" }, { const: 8 }] }, [": must be 8; it would be 7"]],
  [
    { width: 4096, deep: 1 },
    to("Size"),
    ["width: must be at most 2048; it would be 4096", "deep: is no input of the model"],
  ],
  [{}, to("Size"), ["width: is required by the model, and the call does not place it"]],
  [1.5, { type: "integer" }, [": must be a whole number; it would be 1.5"]],
  ["5", { type: "number" }, [': must be a number; it would be "5"']],
  ["true", { type: "boolean" }, [': must be true or false; it would be "true"']],
  [["a", 1], { type: "array", items: { type: "string" } }, ["1: must be a text; it would be 1"]],
  ["a", { type: "array" }, [': must be a list; it would be "a"']],
  [["a", "b"], { type: "array", maxItems: 1 }, [": must have at most 1 items"]],
  [{ anything: 1 }, { type: "object" }, []],
  ["what is not described", to("Loop"), []],
  ["nor there", to("Nothing"), []],
  ["a schema of two that are the same one again", to("Twice"), []],
])("%j by %j", (value, schema, expected) => {
  expect(faultsOf(value, schema)).toEqual(expected);
});

test.each<[string, JsonValue, boolean]>([
  ["video.url", { type: "object", properties: { video: to("Video") } }, true],
  ["video.size", { type: "object", properties: { video: to("Video") } }, false],
  ["video", { type: "object", properties: { video: to("Video") } }, false],
  ["film.url", { type: "object", properties: { video: to("Video") } }, false],
  ["images[*].url", { properties: { images: { type: "array", items: to("Video") } } }, true],
  ["images[0].url", { properties: { images: { type: "array", items: to("Video") } } }, true],
  ["output[*]", { properties: { output: { type: "string" } } }, true],
  ["output[0]", { properties: { output: { type: "string" } } }, false],
  [
    "output[*]",
    { properties: { output: { anyOf: [{ type: "null" }, { type: "string" }] } } },
    true,
  ],
  ["output.url", { properties: { output: {} } }, true],
  ["output.url", { properties: { output: to("Twice") } }, true],
])("a text at %s of %j: %s", (path, schema, expected) => {
  expect(hasText(schema, parseOutputPath(path) ?? [], document)).toBe(expected);
});
