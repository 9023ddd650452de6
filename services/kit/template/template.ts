import { isJsonObject, type JsonObject, type JsonValue } from "#kit/base/json.ts";

/**
 * The input of an upstream's model: JSON from the catalog with `${name}` in place of a generation's values.
 * * A text that is only `${x}` becomes the value with its type. `${x:string}` and longer texts become text. `$$` is a `$`.
 * * An absent value leaves its key or list element out. Within a longer text it is empty.
 * * `{ $map: "${x}", key: value, … }` becomes the value whose key is `${x}` as text. Null leaves it out.
 */
export type Template = JsonValue;

/** The values of one generation, by the names that a template knows. Absent ones are undefined. */
export type CallValues = Readonly<Record<string, JsonValue | undefined>>;

/** A `${…}`: `${seconds}`, `${seconds:string}`, `${references[0]}`. */
export interface Placeholder {
  name: string;
  /** The index in `references[0]`. */
  index: number | undefined;
  isText: boolean;
}

/** A place in a template, from its root. */
export type TemplatePath = readonly (string | number)[];

/** A part of a template that a check looks at. */
export type TemplatePart =
  | { kind: "placeholder"; path: TemplatePath; placeholder: Placeholder }
  | { kind: "map"; path: TemplatePath; of: Placeholder; keys: readonly string[] }
  | { kind: "fault"; path: TemplatePath; message: string };

const placeholderText = /^([A-Za-z]+)(?:\[(\d{1,2})\])?(:string)?$/;
/** `$$`, `${…}`, or a `$` that is neither. */
const dollars = /\$\$|\$\{([^}]*)\}|\$/g;
const whole = /^\$\{([^}]*)\}$/;
const mapKey = "$map";

/** Every part of a template that depends on a value, and the faults in its own form. */
export function partsOf(template: Template, path: TemplatePath = []): TemplatePart[] {
  if (typeof template === "string") return partsOfText(template, path);
  if (Array.isArray(template)) {
    return template.flatMap((item, index) => partsOf(item, [...path, index]));
  }
  if (!isJsonObject(template)) return [];
  if (Object.hasOwn(template, mapKey)) return partsOfMap(template, path);
  return Object.entries(template).flatMap(([key, value]) => partsOf(value, [...path, key]));
}

/** The template with a generation's values in their places. Undefined where all of it is left out. */
export function fill(template: Template, values: CallValues): JsonValue | undefined {
  if (typeof template === "string") return fillText(template, values);
  if (Array.isArray(template)) {
    return template.flatMap((item) => {
      const filled = fill(item, values);
      return filled === undefined ? [] : [filled];
    });
  }
  if (!isJsonObject(template)) return template;
  if (Object.hasOwn(template, mapKey)) return fillMap(template, values);
  const object: JsonObject = {};
  for (const [key, value] of Object.entries(template)) {
    const filled = fill(value, values);
    if (filled !== undefined) object[key] = filled;
  }
  return object;
}

function partsOfText(text: string, path: TemplatePath): TemplatePart[] {
  return [...text.matchAll(dollars)].flatMap(([found, inner]): TemplatePart[] => {
    if (found === "$$") return [];
    if (inner === undefined) {
      return [{ kind: "fault", path, message: "has a $ that begins no ${name}; $$ is a plain $" }];
    }
    const placeholder = placeholderOf(inner);
    return placeholder
      ? [{ kind: "placeholder", path, placeholder }]
      : [{ kind: "fault", path, message: "has a ${…} that is no name" }];
  });
}

function partsOfMap(map: JsonObject, path: TemplatePath): TemplatePart[] {
  const { [mapKey]: of, ...choices } = map;
  const at = [...path, mapKey];
  const placeholder = typeof of === "string" ? placeholderOf(whole.exec(of)?.[1] ?? "") : undefined;
  if (!placeholder) return [{ kind: "fault", path: at, message: "must be wholly one ${name}" }];
  const inside = Object.entries(choices).flatMap(([key, value]) => partsOf(value, [...path, key]));
  return [{ kind: "map", path, of: placeholder, keys: Object.keys(choices) }, ...inside];
}

function placeholderOf(text: string): Placeholder | undefined {
  const [, name, index, isText] = placeholderText.exec(text) ?? [];
  if (name === undefined) return undefined;
  return {
    name,
    index: index === undefined ? undefined : Number(index),
    isText: isText !== undefined,
  };
}

function namedValue(inner: string, values: CallValues): JsonValue | undefined {
  const placeholder = placeholderOf(inner);
  if (!placeholder) return undefined;
  const { name, index, isText } = placeholder;
  const named = Object.hasOwn(values, name) ? values[name] : undefined;
  const value = index === undefined ? named : Array.isArray(named) ? named[index] : undefined;
  if (value === undefined || value === null) return undefined;
  return isText ? textOf(value) : value;
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
  if (key === undefined || key === mapKey || !Object.hasOwn(map, key)) return undefined;
  const chosen = map[key];
  return chosen === undefined || chosen === null ? undefined : fill(chosen, values);
}
