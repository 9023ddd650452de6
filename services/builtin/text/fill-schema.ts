// Makes a value that satisfies a JSON schema, for calls of tools and for structured output.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";
import type { Random } from "../seed.ts";

/** The material for values. */
export interface Material {
  /** The user's words. */
  said: string;
  random: Random;
}

/** A schema that nests deeper, or refers to itself, ends in empty values. */
const maxDepth = 8;
/** Characters of a reference: a path to a definition has a few names. */
const maxRefCharacters = 1_000;
/** Characters of the input that are searched. Each value searches them again. */
const maxSearched = 64 * 1024;
/**
 * The most that one result may cost. A small schema can ask for a tree of any size, or refer to a long constant hundreds of times. It
 * can also let references multiply without a single value. Each character of constants and names costs 1.
 */
const budget = 256 * 1024;
/** So a result has some 500 values at most. */
const valueCost = 512;
/** For each reference, choice, or property of a schema that is merged. */
const stepCost = 64;
/** For each option that is searched for in the input. */
const optionCost = 16;

/** A value that satisfies a JSON schema (the subset that tools and structured output use), made from the input. */
export function fillSchema(schema: JsonValue | undefined, material: Material): JsonValue {
  return new Filler(isJsonObject(schema) ? schema : {}, material).value(schema, "", 0);
}

class Filler {
  readonly #root: JsonObject;
  readonly #said: string;
  readonly #random: Random;
  #left = budget;

  constructor(root: JsonObject, { said, random }: Material) {
    this.#root = root;
    this.#said = said.slice(0, maxSearched);
    this.#random = random;
  }

  value(found: JsonValue | undefined, name: string, depth: number): JsonValue {
    const schema = this.#resolved(found, 0);
    const type = typeOf(schema);
    this.#left -= valueCost;
    if (this.#left < 0 || depth > maxDepth) return empty.has(type) ? (empty.get(type) ?? null) : "";
    if (schema.const !== undefined) return this.#given(schema.const);
    if (Array.isArray(schema.enum) && schema.enum.length > 0) {
      return this.#given(this.#option(schema.enum));
    }
    const [example] = Array.isArray(schema.examples) ? schema.examples : [];
    if (example !== undefined) return this.#given(example);
    switch (type) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, name, depth);
      case "integer":
      case "number":
        return this.#number(schema, type);
      case "boolean":
        return !/\b(no|not|false|off|without)\b/i.test(this.#said);
      case "null":
        return null;
      default:
        return this.#string(schema, name);
    }
  }

  /** A value that the schema gives. Only the beginning of a long text is used. */
  #given(value: JsonValue): JsonValue {
    const part = typeof value === "string" ? value.slice(0, this.#left) : value;
    this.#left -= charactersOf(part, this.#left);
    return part;
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const properties = isJsonObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    const object: JsonObject = {};
    // Where no property is required, an empty object would show nothing.
    for (const name of required.length > 0 ? required : Object.keys(properties)) {
      if (this.#left < 0) break;
      this.#left -= name.length;
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      object[name] = this.value(property, name, depth + 1);
    }
    return object;
  }

  #array({ items, minItems, maxItems }: JsonObject, name: string, depth: number): JsonValue[] {
    const least = numberOr(minItems, 0);
    const length = Math.max(least, Math.min(1, numberOr(maxItems, least + 1)));
    const array: JsonValue[] = [];
    while (array.length < length && this.#left >= 0) array.push(this.value(items, name, depth + 1));
    return array;
  }

  #number(schema: JsonObject, type: "integer" | "number"): number {
    const above = numberOr(schema.exclusiveMinimum, Number.NEGATIVE_INFINITY);
    const below = numberOr(schema.exclusiveMaximum, Number.POSITIVE_INFINITY);
    const least = numberOr(schema.minimum, above);
    const most = numberOr(schema.maximum, below);
    const step = numberOr(schema.multipleOf, type === "integer" ? 1 : 0);
    const mentioned = /-?\d+(?:\.\d+)?/.exec(this.#said)?.[0];
    let value = mentioned === undefined ? 1 + this.#random.below(10) : Number(mentioned);
    value = Math.max(least, Math.min(most, value));
    if (step) value = Math.ceil(value / step) * step;
    if (step && value > most) value -= step;
    if (value === above) value += step || 0.5;
    if (value === below) value -= step || 0.5;
    return value;
  }

  #string({ minLength, maxLength, format }: JsonObject, name: string): string {
    const text = (typeof format === "string" && formats.get(format)) || this.#words(name);
    const most = numberOr(maxLength, Number.MAX_SAFE_INTEGER);
    return text.padEnd(Math.min(numberOr(minLength, 0), 1000), ".").slice(0, most);
  }

  /** Words of the input that suit a field of this name. */
  #words(name: string): string {
    const said = this.#said.replace(/\s+/g, " ").trim();
    const place =
      /\b(?:in|at|to|for|from|near|nach|à|en)\s+(\p{Lu}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)*)/u;
    const proper = /(?<=[\p{L},;] )\p{Lu}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)*/u;
    if (/city|place|location|country|town|address|destination/i.test(name)) {
      return place.exec(said)?.[1] ?? proper.exec(said)?.[0] ?? "Berlin";
    }
    if (/(^|_)(date|day)$/i.test(name)) return /\d{4}-\d{2}-\d{2}/.exec(said)?.[0] ?? "2026-01-01";
    if (/^(name|person|user|customer|author)$/i.test(name)) return proper.exec(said)?.[0] ?? "Ada";
    return (said || name || "text").slice(0, 200);
  }

  /** The option that the input mentions, otherwise one of them. */
  #option(options: readonly JsonValue[]): JsonValue {
    const said = this.#said.toLowerCase();
    const looked = options.slice(0, Math.max(0, this.#left / optionCost));
    this.#left -= looked.length * optionCost;
    return looked.find((option) => isNamed(option, said)) ?? this.#random.pick(options);
  }

  /** Follows references and choices to a schema with a type. */
  #resolved(schema: JsonValue | undefined, hops: number): JsonObject {
    this.#left -= stepCost;
    if (!isJsonObject(schema) || hops > maxDepth || this.#left < 0) return {};
    if (typeof schema.$ref === "string") return this.#resolved(this.#target(schema.$ref), hops + 1);
    const options = [schema.anyOf, schema.oneOf].find(Array.isArray);
    if (options) {
      const real = options.findIndex((option) => isJsonObject(option) && option.type !== "null");
      this.#left -= (real < 0 ? options.length : real) * stepCost;
      return this.#resolved(options[Math.max(0, real)], hops + 1);
    }
    if (!Array.isArray(schema.allOf)) return schema;
    const all = [schema, ...schema.allOf.map((part) => this.#resolved(part, hops + 1))];
    return this.#merged(all);
  }

  #merged(schemas: readonly JsonObject[]): JsonObject {
    const { allOf: _, ...whole }: JsonObject = Object.assign({}, ...schemas);
    const properties = Object.assign(
      {},
      ...schemas.map((schema) => (isJsonObject(schema.properties) ? schema.properties : {})),
    );
    const required = schemas.flatMap((schema) =>
      Array.isArray(schema.required) ? schema.required : [],
    );
    const names = Object.keys(properties).length;
    this.#left -= (names + required.length) * stepCost;
    return names > 0 ? { ...whole, properties, required } : { ...whole, required };
  }

  #target(ref: string): JsonValue | undefined {
    if (ref.length > maxRefCharacters) return undefined;
    let at: JsonValue | undefined = this.#root;
    for (const step of ref.replace(/^#\/?/, "").split("/").filter(Boolean)) {
      at = isJsonObject(at) ? at[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
    }
    return at;
  }
}

/** Characters of a value's JSON, roughly. Stops counting past `most`. */
function charactersOf(value: JsonValue, most: number): number {
  if (typeof value === "string") return value.length;
  if (typeof value !== "object" || value === null) return 8;
  let sum = 2;
  for (const name in value) {
    if (sum > most) break;
    const inner = (value as JsonObject)[name] as JsonValue;
    sum += charactersOf(inner, most - sum) + (Array.isArray(value) ? 1 : name.length + 4);
  }
  return sum;
}

function typeOf({ type, properties, items }: JsonObject): string {
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return `${type.find((option) => option !== "null") ?? "null"}`;
  if (isJsonObject(properties)) return "object";
  return items === undefined ? "string" : "array";
}

function numberOr(value: JsonValue | undefined, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}

function isNamed(option: JsonValue, said: string): boolean {
  if (typeof option !== "string" || option === "" || option.length > said.length) return false;
  return said.includes(option.toLowerCase());
}

const empty: ReadonlyMap<string, JsonValue> = new Map(
  Object.entries({ object: {}, array: [], integer: 0, number: 0, boolean: false, null: null }),
);

const formats: ReadonlyMap<string, string> = new Map(
  Object.entries({
    date: "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    time: "12:00:00Z",
    duration: "PT1H",
    email: "ada@example.com",
    hostname: "example.com",
    uri: "https://example.com/",
    uuid: "00000000-0000-4000-8000-000000000000",
    ipv4: "192.0.2.1",
    ipv6: "2001:db8::1",
  }),
);
