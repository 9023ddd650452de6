// Keeps the fields of an answer that callers may see, by a list of names and shapes. Most lists are in chat/visible-fields.ts and
// responses/visible-fields.ts.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * The values that a place of an answer may have: a text, number, boolean or null ("plain"), or a list of them ("list"). Or an object
 * with these fields and no others, or a list of such objects.
 */
export type Shape = "plain" | "list" | Fields | readonly [Fields];
/** Fields of an object, by name. */
export type Fields = { readonly [name: string]: Shape };

/** Does the object have only these fields, and only these shapes? */
export function fits(object: JsonObject, fields: Fields): boolean {
  for (const name in object) {
    const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (shape === undefined || !fitsShape(object[name] as JsonValue, shape)) return false;
  }
  return true;
}

/** The object with these fields alone. Values of another shape are left out. */
export function only(object: JsonObject, fields: Fields): JsonObject {
  const kept: JsonObject = {};
  for (const name of Object.keys(object)) {
    const shape = Object.hasOwn(fields, name) ? fields[name] : undefined;
    const value = shape === undefined ? undefined : shaped(object[name] as JsonValue, shape);
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}

function fitsShape(value: JsonValue, shape: Shape): boolean {
  if (isPlain(value)) return true;
  if (shape === "plain") return false;
  if (Array.isArray(value)) {
    if (shape === "list") return value.every(isPlain);
    if (!isListOf(shape)) return false;
    const [fields] = shape;
    return value.every((one) => isJsonObject(one) && fits(one, fields));
  }
  return shape !== "list" && !isListOf(shape) && fits(value, shape);
}

function shaped(value: JsonValue, shape: Shape): JsonValue | undefined {
  if (isPlain(value)) return value;
  if (shape === "plain") return undefined;
  if (Array.isArray(value)) {
    if (shape === "list") return value.filter(isPlain);
    if (!isListOf(shape)) return undefined;
    const [fields] = shape;
    return value.filter(isJsonObject).map((one) => only(one, fields));
  }
  return shape === "list" || isListOf(shape) ? undefined : only(value, shape);
}

function isListOf(shape: Shape): shape is readonly [Fields] {
  return Array.isArray(shape);
}

function isPlain(value: JsonValue): value is string | number | boolean | null {
  return typeof value !== "object" || value === null;
}
