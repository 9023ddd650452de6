// Describes the keys of a catalog file to people: the JSON schema for editors, and the values of each key for `genmesh catalog
// explain`. Both are made of `schema.ts` and `key-words.ts`.

import { z } from "zod";
import { isJsonObject, type JsonObject } from "#kit/base/json.ts";
import { keyWords } from "./key-words.ts";
import { catalogSchema } from "./schema.ts";

/** The JSON schema of a catalog file, for editors. Rules between keys are not in it: `genmesh catalog check` finds those. */
export function catalogJsonSchema(): JsonObject {
  const schema = z.toJSONSchema(catalogSchema, { io: "input" }) as JsonObject;
  for (const { path, schema: key } of keysIn(schema)) {
    const words = wordsOf(path);
    if (words !== undefined) key.description = words;
  }
  return { ...schema, title: "A catalog of genmesh" };
}

/** A key of a catalog file. */
export interface CatalogKey {
  /** Its name behind the names of all keys above it. */
  path: readonly string[];
  /** The same as text, with the kind or the protocol of what has the key: `models(chat).pricing`. */
  place: string;
  /** The JSON schema of its value. */
  schema: JsonObject;
  isRequired: boolean;
}

type Above = Pick<CatalogKey, "path" | "place">;

/** All keys of a schema, from the root down. One that several kinds of models or protocols have comes once for each. */
export function keysIn(schema: JsonObject, above: Above = { path: [], place: "" }): CatalogKey[] {
  const properties = isJsonObject(schema.properties) ? schema.properties : {};
  const variant = [properties.kind, properties.protocol].find(isJsonObject)?.const;
  const from = variant === undefined ? above.place : `${above.place}(${variant})`;
  const required: readonly unknown[] = Array.isArray(schema.required) ? schema.required : [];
  const own = Object.entries(properties).flatMap(([name, value]) => {
    if (!isJsonObject(value)) return [];
    const place = from === "" ? name : `${from}.${name}`;
    const key = { path: [...above.path, name], place, schema: value };
    return [{ ...key, isRequired: required.includes(name) }, ...keysIn(value, key)];
  });
  const inner = [schema.items, schema.additionalProperties, schema.oneOf, schema.anyOf].flat();
  return [...own, ...inner.filter(isJsonObject).flatMap((part) => keysIn(part, above))];
}

/** The meaning of the key at a path: of the entries that end it, the longest. */
export function wordsOf(path: readonly string[]): string | undefined {
  const ends = path.map((_, at) => path.slice(at).join("."));
  return ends.map((end) => keyWords[end]).find((words) => words !== undefined);
}

/** The values that a key takes, as text: `a whole number from 1 to 100`. */
export function valuesOf(schema: JsonObject): string {
  const { const: only, enum: choices, anyOf, oneOf, type, items } = schema;
  if (only !== undefined) return String(only);
  if (Array.isArray(choices)) return choices.join(" | ");
  const variants = [anyOf, oneOf].flat().filter(isJsonObject);
  if (variants.length > 0) return [...new Set(variants.map(valuesOf))].join(" | ");
  if (type === "array") return `a list of ${isJsonObject(items) ? valuesOf(items) : "values"}`;
  const words = typeof type === "string" ? kindsOfType[type] : undefined;
  const { minimum, maximum } = schema;
  const from = minimum === undefined ? "" : ` from ${minimum}`;
  const to = maximum === undefined ? "" : ` to ${maximum}`;
  return `${words ?? "any value"}${from}${to}`;
}

const kindsOfType: Readonly<Record<string, string>> = {
  boolean: "true | false",
  integer: "a whole number",
  number: "a number",
  object: "a group of keys",
  string: "text",
};
