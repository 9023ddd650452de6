import { isJsonObject, type JsonObject, type JsonValue } from "#kit/json.ts";
import type { Chooser } from "./random.ts";

/** What values are made from. */
export interface Material {
  /** The user's words. */
  said: string;
  choose: Chooser;
}

/** A schema that nests deeper, or refers to itself, ends in empty values. */
const maxDepth = 8;
/** Values of one whole: a schema can ask for a tree of any size. */
const maxValues = 400;
/** References, choices and names that are looked at for one whole: they can fan out without a single value. */
const maxSteps = 4000;
/** Characters of a reference: a path to a definition has a few names. */
const maxRefChars = 1000;
/** Options that are looked for in the input, for one whole: each costs a search. */
const maxOptions = 2000;

/**
 * Characters of a whole's constants, options, examples and names, and so of its JSON: twice what is said of it. A small schema can
 * refer to a long constant hundreds of times.
 */
const maxCharacters = 128 * 1024;

/** Characters of the input that are searched: each value of a whole searches them anew. */
const maxSearched = 64 * 1024;

/** A value that satisfies a JSON schema (the subset that tools and structured output use), made from the input. */
export function fillSchema(schema: JsonValue | undefined, material: Material): JsonValue {
  return new Filler(isJsonObject(schema) ? schema : {}, material).value(schema, "", 0);
}

class Filler {
  readonly #root: JsonObject;
  readonly #said: string;
  readonly #choose: Chooser;
  #values = 0;
  #steps = 0;
  #options = 0;
  #characters = 0;

  constructor(root: JsonObject, { said, choose }: Material) {
    this.#root = root;
    this.#said = said.slice(0, maxSearched);
    this.#choose = choose;
  }

  value(found: JsonValue | undefined, name: string, depth: number): JsonValue {
    const schema = this.#resolved(found, 0);
    if (++this.#values > maxValues || depth > maxDepth) return emptyOf(typeOf(schema));
    if (this.#characters > maxCharacters) return emptyOf(typeOf(schema));
    if (schema.const !== undefined) return this.#given(schema.const);
    if (Array.isArray(schema.enum) && schema.enum.length > 0) {
      return this.#given(this.#option(schema.enum));
    }
    const [first] = Array.isArray(schema.examples) ? schema.examples : [];
    if (first !== undefined) return this.#given(first);
    switch (typeOf(schema)) {
      case "object":
        return this.#object(schema, depth);
      case "array":
        return this.#array(schema, name, depth);
      case "integer":
      case "number":
        return this.#number(schema);
      case "boolean":
        return !/\b(no|not|false|off|without)\b/i.test(this.#said);
      case "null":
        return null;
      default:
        return this.#string(schema, name);
    }
  }

  /** A value as the schema gives it; of a long text only the beginning. What is given after that is empty. */
  #given(value: JsonValue): JsonValue {
    const part = typeof value === "string" ? value.slice(0, maxCharacters) : value;
    this.#characters += charactersOf(part, maxCharacters);
    return part;
  }

  #object(schema: JsonObject, depth: number): JsonObject {
    const properties = isJsonObject(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
    // Where nothing is required, an empty object would show nothing.
    const names = required.length > 0 ? required : Object.keys(properties);
    const object: JsonObject = {};
    for (const name of names) {
      if (this.#values > maxValues || this.#characters > maxCharacters) break;
      this.#characters += name.length;
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      object[name] = this.value(property, name, depth + 1);
    }
    return object;
  }

  #array(schema: JsonObject, name: string, depth: number): JsonValue[] {
    const least = typeof schema.minItems === "number" ? schema.minItems : 0;
    const most = typeof schema.maxItems === "number" ? schema.maxItems : least + 1;
    const length = Math.max(least, Math.min(1, most));
    const array: JsonValue[] = [];
    while (array.length < length && this.#values <= maxValues) {
      array.push(this.value(schema.items, name, depth + 1));
    }
    return array;
  }

  #number(schema: JsonObject): number {
    const isWhole = typeOf(schema) === "integer";
    const bound = (name: string) => (typeof schema[name] === "number" ? schema[name] : undefined);
    const least = bound("minimum") ?? bound("exclusiveMinimum");
    const most = bound("maximum") ?? bound("exclusiveMaximum");
    const step = bound("multipleOf") ?? (isWhole ? 1 : undefined);
    const mentioned = /-?\d+(?:\.\d+)?/.exec(this.#said)?.[0];
    let value = mentioned === undefined ? this.#choose.integer(1, 10) : Number(mentioned);
    if (most !== undefined && value > most) value = most;
    if (least !== undefined && value < least) value = least;
    if (step) value = Math.ceil(value / step) * step;
    if (step && most !== undefined && value > most) value -= step;
    const space = step ?? 0.5;
    if (value === bound("exclusiveMinimum")) value += space;
    if (value === bound("exclusiveMaximum")) value -= space;
    return value;
  }

  #string(schema: JsonObject, name: string): string {
    const least = typeof schema.minLength === "number" ? schema.minLength : 0;
    const most = typeof schema.maxLength === "number" ? schema.maxLength : Number.MAX_SAFE_INTEGER;
    const text = formatted(schema.format) ?? this.#words(name);
    return text.padEnd(Math.min(least, 1000), ".").slice(0, most);
  }

  /** Words of the input that suit a field of this name. */
  #words(name: string): string {
    const said = this.#said.replace(/\s+/g, " ").trim();
    const isPlace = /city|place|location|country|town|address|destination/i.test(name);
    const place =
      /\b(?:in|at|to|for|from|near|nach|à|en)\s+(\p{Lu}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)*)/u;
    const proper = /(?<=[\p{L},;] )\p{Lu}[\p{L}-]+(?: \p{Lu}[\p{L}-]+)*/u;
    if (isPlace) return place.exec(said)?.[1] ?? proper.exec(said)?.[0] ?? "Berlin";
    if (/(^|_)(date|day)$/i.test(name)) return /\d{4}-\d{2}-\d{2}/.exec(said)?.[0] ?? "2026-01-01";
    if (/^(name|person|user|customer|author)$/i.test(name)) return proper.exec(said)?.[0] ?? "Ada";
    return (said || name || "text").slice(0, 200);
  }

  /** The option that the input mentions, else one of them. */
  #option(options: readonly JsonValue[]): JsonValue {
    const said = this.#said.toLowerCase();
    const looked = options.slice(0, Math.max(0, maxOptions - this.#options));
    this.#options += looked.length;
    const named = looked.find((option) => isNamed(option, said));
    return named ?? this.#choose.pick(options);
  }

  /** Follows references and choices to a schema that says what it is. */
  #resolved(schema: JsonValue | undefined, hops: number): JsonObject {
    if (!isJsonObject(schema) || hops > maxDepth || ++this.#steps > maxSteps) return {};
    if (typeof schema.$ref === "string") return this.#resolved(this.#target(schema.$ref), hops + 1);
    const options = [schema.anyOf, schema.oneOf].find(Array.isArray);
    if (options) {
      const real = options.find((option) => isJsonObject(option) && option.type !== "null");
      this.#steps += real ? options.indexOf(real) : options.length;
      return this.#resolved(real ?? options[0], hops + 1);
    }
    if (Array.isArray(schema.allOf)) {
      const parts = schema.allOf.map((part) => this.#resolved(part, hops + 1));
      const all = [schema, ...parts];
      this.#steps += all.reduce((sum, part) => sum + sizeOf(part), 0);
      return merged(all);
    }
    return schema;
  }

  #target(ref: string): JsonValue | undefined {
    if (ref.length > maxRefChars) return undefined;
    let at: JsonValue | undefined = this.#root;
    for (const step of ref.replace(/^#\/?/, "").split("/").filter(Boolean)) {
      at = isJsonObject(at) ? at[step.replaceAll("~1", "/").replaceAll("~0", "~")] : undefined;
    }
    return at;
  }
}

/** Characters of a value's JSON, roughly; stops counting past `most`. */
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

function typeOf(schema: JsonObject): string {
  const { type } = schema;
  if (typeof type === "string") return type;
  if (Array.isArray(type)) return `${type.find((option) => option !== "null") ?? "null"}`;
  if (isJsonObject(schema.properties)) return "object";
  return schema.items === undefined ? "string" : "array";
}

/** What merging a schema costs: its properties and required names. */
function sizeOf({ properties, required }: JsonObject): number {
  const names = isJsonObject(properties) ? Object.keys(properties).length : 0;
  return names + (Array.isArray(required) ? required.length : 0);
}

function emptyOf(type: string): JsonValue {
  switch (type) {
    case "object":
      return {};
    case "array":
      return [];
    case "integer":
    case "number":
      return 0;
    case "boolean":
      return false;
    case "null":
      return null;
    default:
      return "";
  }
}

function merged(schemas: readonly JsonObject[]): JsonObject {
  const whole: JsonObject = Object.assign({}, ...schemas.map(({ allOf: _, ...rest }) => rest));
  const named = schemas.map(({ properties }) => (isJsonObject(properties) ? properties : {}));
  whole.properties = Object.assign({}, ...named);
  whole.required = schemas.flatMap(({ required }) => (Array.isArray(required) ? required : []));
  if (Object.keys(whole.properties as JsonObject).length === 0) delete whole.properties;
  return whole;
}

function isNamed(option: JsonValue, said: string): boolean {
  if (typeof option !== "string" || option === "" || option.length > said.length) return false;
  return said.includes(option.toLowerCase());
}

function formatted(format: JsonValue | undefined): string | undefined {
  switch (format) {
    case "date":
      return "2026-01-01";
    case "date-time":
      return "2026-01-01T12:00:00Z";
    case "time":
      return "12:00:00Z";
    case "duration":
      return "PT1H";
    case "email":
      return "ada@example.com";
    case "hostname":
      return "example.com";
    case "uri":
      return "https://example.com/";
    case "uuid":
      return "00000000-0000-4000-8000-000000000000";
    case "ipv4":
      return "192.0.2.1";
    case "ipv6":
      return "2001:db8::1";
    default:
      return undefined;
  }
}
