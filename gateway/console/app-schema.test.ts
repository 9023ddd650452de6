import { expect, test } from "vitest";
import { schemaOf } from "./app/screens/playground/json-schema.ts";

const faultOf = (schema: unknown) => schemaOf(JSON.stringify(schema)).error;
const withName = (name: unknown) => ({ type: "object", properties: { name } });

test("a schema is taken as it is, and no text is no schema", () => {
  const schema = {
    ...withName({ anyOf: [{ type: ["string", "null"] }, { $ref: "#/$defs/one" }] }),
    required: ["name"],
    additionalProperties: false,
    $defs: { one: { type: "array", items: true, enum: [1] } },
  };
  expect(schemaOf(JSON.stringify(schema))).toEqual({ schema });
  expect(schemaOf(" \n")).toEqual({});
});

test.each([
  [7, "A schema is a JSON object."],
  [{ type: "array" }, 'The schema of an answer has "type": "object".'],
  [withName({ type: "text" }), /properties › name has the unknown type "text"/],
  [withName("string"), "The schema › properties › name is no object."],
  [withName({ anyOf: {} }), "The schema › properties › name › anyOf is no list."],
  [withName({ items: { required: "a" } }), /items has a "required" that is no list/],
  [{ ...withName(true), required: ["age"] }, /requires "age", which is not among/],
  [{ type: "object", properties: [] }, "The schema › properties is no object."],
])("the fault of %j is said", (schema, said) => {
  expect(faultOf(schema)).toMatch(said);
});

test("text that is no JSON is said to be none", () => {
  expect(schemaOf("{").error).toMatch(/^This is not JSON/);
});
