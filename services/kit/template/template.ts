// Reads and fills templates of the catalog. Upstreams whose models each have an input of their own are asked by them.

import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * The input of an upstream's model: JSON from the catalog with `${name}` in place of a generation's values.
 * * A text that is only `${x}` becomes the value with its type. `${x:string}` and longer texts become text. `$$` is a `$`.
 * * An absent value leaves its key or list element out. Within a longer text it is empty.
 * * `{ $map: "${x}", key: value, … }` becomes the value whose key is `${x}` as text, or that of the key `*`. Null leaves it out.
 * * `{ $each: "${references}", key: value, … }` becomes an object for each reference, which `${item}` names inside. In a list these
 *   are items of that list. Of one reference (`${references[0]}`) it becomes one object, or is left out.
 * * `${item:base64}` is the bytes of a data URI, and `${item:mimeType}` its media type.
 */
export type Template = JsonValue;

/** The values of one generation, by the names that a template knows. Absent ones are undefined. */
export type CallValues = Readonly<Record<string, JsonValue | undefined>>;

/** A `${…}`: `${seconds}`, `${seconds:string}`, `${references[0]}`, `${references[0]:base64}`. */
export interface Placeholder {
  name: string;
  /** The index in `references[0]`. */
  index: number | undefined;
  form: Form | undefined;
}

/** The form in which a value is placed, where that is not its own. */
type Form = "string" | "base64" | "mimeType";

/** A place in a template, from its root. */
export type TemplatePath = readonly (string | number)[];

/** A part of a template that a check looks at. */
export type TemplatePart =
  /** `isEach`: the part makes one object of each reference. Without references it makes no object. */
  | { kind: "placeholder"; path: TemplatePath; placeholder: Placeholder; isEach?: true }
  | { kind: "map"; path: TemplatePath; of: Placeholder; keys: readonly string[] }
  | { kind: "fault"; path: TemplatePath; message: string };

const placeholderText = /^([A-Za-z]+)(?:\[(\d{1,2})\])?(?::(string|base64|mimeType))?$/;
/** `$$`, `${…}`, or a `$` that is neither. */
const dollars = /\$\$|\$\{([^}]*)\}|\$/g;
const whole = /^\$\{([^}]*)\}$/;
const mapKey = "$map";
/** The key of a map for every other value. */
const otherKey = "*";
const eachKey = "$each";
/** The name of one reference within `$each`. */
const itemName = "item";

/** Every part of a template that depends on a value, and the faults in its own form. */
export function partsOf(template: Template, path: TemplatePath = []): TemplatePart[] {
  return partsWithin(template, path, false);
}

/** `isEach`: the template is within `$each`, where `${item}` has a meaning. It places nothing else than what `$each` names. */
function partsWithin(template: Template, path: TemplatePath, isEach: boolean): TemplatePart[] {
  if (typeof template === "string") return partsOfText(template, path, isEach);
  if (Array.isArray(template)) {
    return template.flatMap((item, index) => partsWithin(item, [...path, index], isEach));
  }
  if (!isJsonObject(template)) return [];
  if (Object.hasOwn(template, mapKey)) return partsOfMap(template, path, isEach);
  if (Object.hasOwn(template, eachKey)) return partsOfEach(template, path);
  return Object.entries(template).flatMap(([key, value]) =>
    partsWithin(value, [...path, key], isEach),
  );
}

/** The template with a generation's values in their places. Undefined where all of it is left out. */
export function fill(template: Template, values: CallValues): JsonValue | undefined {
  if (typeof template === "string") return fillText(template, values);
  if (Array.isArray(template)) {
    return template.flatMap((item) => {
      const filled = fill(item, values);
      if (filled === undefined) return [];
      const isSpliced = isJsonObject(item) && Object.hasOwn(item, eachKey) && Array.isArray(filled);
      return isSpliced ? filled : [filled];
    });
  }
  if (!isJsonObject(template)) return template;
  if (Object.hasOwn(template, mapKey)) return fillMap(template, values);
  if (Object.hasOwn(template, eachKey)) return fillEach(template, values);
  const object: JsonObject = {};
  for (const [key, value] of Object.entries(template)) {
    const filled = fill(value, values);
    if (filled !== undefined) object[key] = filled;
  }
  return object;
}

function partsOfText(text: string, path: TemplatePath, isEach: boolean): TemplatePart[] {
  return [...text.matchAll(dollars)].flatMap(([found, inner]): TemplatePart[] => {
    if (found === "$$") return [];
    if (inner === undefined) {
      return [{ kind: "fault", path, message: "has a $ that begins no ${name}; $$ is a plain $" }];
    }
    const placeholder = placeholderOf(inner);
    if (placeholder?.name === itemName) {
      const message = "names item, which only the inside of $each has";
      return isEach ? [] : [{ kind: "fault", path, message }];
    }
    return placeholder
      ? [{ kind: "placeholder", path, placeholder }]
      : [{ kind: "fault", path, message: "has a ${…} that is no name" }];
  });
}

function partsOfMap(map: JsonObject, path: TemplatePath, isEach: boolean): TemplatePart[] {
  const { [mapKey]: of, ...choices } = map;
  const at = [...path, mapKey];
  const placeholder = typeof of === "string" ? placeholderOf(whole.exec(of)?.[1] ?? "") : undefined;
  if (!placeholder) return [{ kind: "fault", path: at, message: "must be wholly one ${name}" }];
  const inside = Object.entries(choices).flatMap(([key, value]) =>
    partsWithin(value, [...path, key], isEach),
  );
  return [{ kind: "map", path, of: placeholder, keys: Object.keys(choices) }, ...inside];
}

function partsOfEach(each: JsonObject, path: TemplatePath): TemplatePart[] {
  const { [eachKey]: of, ...inside } = each;
  const at = [...path, eachKey];
  const placeholder = typeof of === "string" ? placeholderOf(whole.exec(of)?.[1] ?? "") : undefined;
  if (placeholder?.name !== "references" || placeholder.form !== undefined) {
    const message = "must be wholly ${references}, or one of them like ${references[0]}";
    return [{ kind: "fault", path: at, message }];
  }
  const parts = Object.entries(inside).flatMap(([key, value]) =>
    partsWithin(value, [...path, key], true),
  );
  return [{ kind: "placeholder", path: at, placeholder, isEach: true }, ...parts];
}

function placeholderOf(text: string): Placeholder | undefined {
  const [, name, index, form] = placeholderText.exec(text) ?? [];
  if (name === undefined) return undefined;
  return {
    name,
    index: index === undefined ? undefined : Number(index),
    form: form as Form | undefined,
  };
}

function namedValue(inner: string, values: CallValues): JsonValue | undefined {
  const placeholder = placeholderOf(inner);
  if (!placeholder) return undefined;
  const { name, index, form } = placeholder;
  const named = Object.hasOwn(values, name) ? values[name] : undefined;
  const value = index === undefined ? named : Array.isArray(named) ? named[index] : undefined;
  if (value === undefined || value === null) return undefined;
  if (form === undefined) return value;
  return form === "string" ? textOf(value) : partOfDataUri(value, form);
}

/** Undefined where the value is no data URI in base64. */
function partOfDataUri(value: JsonValue, part: "base64" | "mimeType"): string | undefined {
  const comma = typeof value === "string" ? value.indexOf(";base64,") : -1;
  if (typeof value !== "string" || comma < 0 || !value.startsWith("data:")) return undefined;
  return part === "mimeType"
    ? value.slice("data:".length, comma)
    : value.slice(comma + ";base64,".length);
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function fillText(text: string, values: CallValues): JsonValue | undefined {
  const inner = whole.exec(text)?.[1];
  if (inner !== undefined) return namedValue(inner, values);
  // The replacement is a function, so that `$` in a value has no special meaning.
  return text.replace(dollars, (found, name?: string) => {
    if (found === "$$") return "$";
    const value = name === undefined ? undefined : namedValue(name, values);
    return value === undefined ? "" : textOf(value);
  });
}

function fillMap(map: JsonObject, values: CallValues): JsonValue | undefined {
  const of = map[mapKey];
  const value = typeof of === "string" ? fillText(of, values) : undefined;
  const key = value === undefined ? undefined : textOf(value);
  if (key === undefined || key === mapKey) return undefined;
  const found = Object.hasOwn(map, key) ? key : otherKey;
  const chosen = Object.hasOwn(map, found) ? map[found] : undefined;
  return chosen === undefined || chosen === null ? undefined : fill(chosen, values);
}

function fillEach(each: JsonObject, values: CallValues): JsonValue | undefined {
  const { [eachKey]: of, ...inside } = each;
  const found = typeof of === "string" ? fillText(of, values) : undefined;
  const filled = (item: JsonValue) => fill(inside, { ...values, [itemName]: item });
  if (!Array.isArray(found)) return found === undefined ? undefined : filled(found);
  return found.flatMap((item) => filled(item) ?? []);
}
